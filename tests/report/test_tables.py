from __future__ import annotations

import csv
import io
import json
import math

from counterfoil.report.content import ReportContent
from counterfoil.report.csv_tables import drops_to_csv, skipped_to_csv
from counterfoil.report.markdown_tables import drops_to_markdown
from counterfoil.report.summary_json import summarize
from counterfoil.types import Drop, Preprocessing, Run, Skipped

HEADER = (
    "model,attribute,edit,level,n,accuracy_original,accuracy_control,accuracy,drop,ci_low,ci_high,drop_vs_control,"
    "p_value,object_share,reference,n_reference,accuracy_reference,drop_vs_reference,reference_low,reference_high,"
    "tool_uncertainty,family,p_adjusted,controls,drop_vs_fill_control"
)
DROP = Drop(
    model="net",
    attribute="background",
    edit="background-swap",
    level="other",
    n=64,
    accuracy_original=81.25,
    accuracy_control=79.6875,
    accuracy=50.0,
    drop=31.25,
    ci_low=20.0,
    ci_high=42.5,
    drop_vs_control=-0.00001,
    p_value=3.25e-12,
    object_share=24.43,
    n_reference=64,
    accuracy_reference=81.25,
    drop_vs_reference=31.25,
    reference_low=19.0,
    reference_high=43.5,
    family="attributes",
    p_adjusted=0.0312345678,
)
NOTHING = Drop("net", "size", "size", "0.05", 0, *[math.nan] * 8)
RUN = Run(
    command="counterfoil run",
    images="photos",
    masks=None,
    recipe="attributes",
    recipe_digest="00",
    seed=0,
    samples=64,
    models=("net",),
    model_digests={"net": "ab"},
    preprocessing={"net": Preprocessing(size=(224, 224), resize=256)},
    environment={"python": "3.12"},
)


def test_the_table_has_the_promised_columns_in_the_promised_order() -> None:
    assert drops_to_csv([]).rstrip("\n") == HEADER


def test_numbers_have_fixed_decimals_and_small_p_values_survive() -> None:
    line = drops_to_csv([DROP]).splitlines()[1]
    assert line == (
        "net,background,background-swap,other,64,81.2500,79.6875,50.0000,31.2500,20.0000,42.5000,0.0000,"
        "3.25e-12,24.4300,original,64,81.2500,31.2500,19.0000,43.5000,nan,attributes,0.0312346,,nan"
    )


def test_no_data_is_nan_and_never_zero() -> None:
    (line,) = csv.DictReader(io.StringIO(drops_to_csv([NOTHING])))
    assert line["n"] == line["n_reference"] == "0"
    others = set(HEADER.split(",")[5:]) - {"reference", "n_reference", "family", "controls"}
    assert all(math.isnan(float(line[name])) for name in others)


def test_skipped_pictures_survive_commas_quotes_and_line_breaks() -> None:
    row = Skipped('cat/"a,b"', "source", "", "line one\nline two")
    (line,) = csv.DictReader(io.StringIO(skipped_to_csv([row])))
    assert line == {"sample_id": 'cat/"a,b"', "stage": "source", "edit": "", "reason": "line one\nline two"}


def test_summary_is_valid_json_with_null_where_there_is_no_number() -> None:
    broken = [Skipped(name, "source", "", "broken") for name in ("a", "c")]
    skipped = [broken[0], Skipped("b", "edit", "size", "small"), broken[1]]
    content = ReportContent(
        run=RUN, drops=[DROP, NOTHING], photos=64, variants=128, skipped=skipped, unscored={"net": 2}
    )
    document = json.loads(json.dumps(summarize(content), allow_nan=False))
    assert document["format"] == 1
    assert document["drops"][1]["drop"] is None
    assert document["drops"][0]["p_value"] == 3.25e-12
    assert document["counts"] == {"photos": 64, "variants": 128, "skipped": 3, "unscored": {"net": 2}}
    assert document["skipped"][0] == {"stage": "source", "edit": "", "reason": "broken", "count": 2}
    assert document["headline"][0].startswith("net is right on 81.2 % of unedited photos")
    assert document["run"]["preprocessing"]["net"]["size"] == [224, 224]


def test_markdown_keeps_its_columns_when_a_name_holds_a_bar() -> None:
    table = drops_to_markdown(
        [
            Drop(
                model="a|b<i>",
                attribute="background",
                edit="fog",
                level="3",
                n=64,
                accuracy_original=80,
                accuracy_control=80,
                accuracy=50,
                drop=30,
                ci_low=20,
                ci_high=40,
                drop_vs_control=30,
                p_value=0.0001,
                n_reference=64,
                p_adjusted=0.001,
            )
        ]
    )
    assert table.splitlines()[2] == (
        "| a\\|b&lt;i> | background | fog | 3 | 64 | 80.0 | 50.0 | 30.0 [20.0, 40.0] | 0.001 |"
    )
