"""Answers that were made elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.errors import UserError
from counterfoil.models.model_loaders import load_model
from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.types import Prediction, Sample, Variant

TABBY, BEAGLE = "n02123045", "n02088364"


def variant(name: str, sample: str = "cats/one.jpg", attribute: str = "original") -> Variant:
    return Variant(
        id=name, sample_id=sample, label=TABBY, attribute=attribute, edit=attribute, level="-", settings="{}", seed=0
    )


def answered(path: Path, *variants: Variant) -> list[tuple[tuple[str, ...], float, str]]:
    model = load_model(f"predictions:{path}")
    images = [np.zeros((2, 2, 3), np.uint8)] * len(variants)
    return [(found.ranked, found.true_score, found.outcome) for found in model.predict(variants, images)]


def test_rows_are_found_by_variant_and_ranked_by_probability(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("variant_id,class,probability\nv1,beagle,0.2\nv1,tabby,0.7\nv2,beagle,0.9\n")
    found = answered(tmp_path / "answers.csv", variant("v1"), variant("v2", attribute="size"))
    assert found == [((TABBY, BEAGLE), 0.7, "scored"), ((BEAGLE,), 0.0, "scored")]


@pytest.mark.parametrize("name", ["cats/one.jpg", "one.jpg", "one"])
def test_a_file_name_stands_for_the_unedited_photo_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "answers.csv").write_text(f"file,class\n{name},tabby\n")
    original, edited = answered(tmp_path / "answers.csv", variant("v1"), variant("v2", attribute="size"))
    assert original == ((TABBY,), 1.0, "scored")
    assert edited[2] == "error"


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    table = pa.table({"variant_id": ["v1"], "class": [TABBY], "probability": [0.5]})
    pq.write_table(table, tmp_path / "answers.parquet")
    assert answered(tmp_path / "answers.parquet", variant("v1")) == [((TABBY,), 0.5, "scored")]


def test_a_runs_own_table_is_read(tmp_path: Path) -> None:
    ranked = Prediction("v1", (TABBY, BEAGLE), (0.75, 0.25), 0.75)
    lost = Prediction("v2", (), (), float("nan"), "error")
    with ResultTables(tmp_path, ["python:model"], None) as tables:
        for found in (ranked, lost):
            made = RenderedVariant(variant(found.variant_id), "0" * 64, 10.0)
            tables.add_variant(
                Sample(id="cats/one.jpg", label=TABBY, image="cats/one.jpg", mask=None, digest="0" * 64), made
            )
            tables.add_prediction("python:model", made, found)
    (path,) = (tmp_path / "predictions").glob("*.parquet")
    first, second = answered(path, variant("v1"), variant("v2", attribute="size"))
    assert first == ((TABBY, BEAGLE), 0.75, "scored")
    assert second[2] == "error"


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize(
    "text", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_parquet_of_every_kind_is_read(tmp_path: Path, codec: str, text: pa.DataType) -> None:
    columns = {
        "variant_id": pa.array([f"v{place // 2}" for place in range(10)]).cast(text),
        "class": pa.array([TABBY, BEAGLE] * 5).cast(text),
        "probability": pa.array([0.75, 0.25] * 5, pa.float32()),
        "remark": pa.array([None, "seen"] * 5),
    }
    pq.write_table(pa.table(columns), tmp_path / "answers.parquet", compression=codec, row_group_size=3)
    (found,) = answered(tmp_path / "answers.parquet", variant("v4"))
    assert found == ((TABBY, BEAGLE), 0.75, "scored")


def test_a_row_of_parquet_may_hold_the_whole_ranking_as_lists(tmp_path: Path) -> None:
    table = pa.table({"variant_id": ["v1"], "class": [[BEAGLE, TABBY]], "probability": [[0.25, 0.5]]})
    pq.write_table(table, tmp_path / "answers.parquet")
    assert answered(tmp_path / "answers.parquet", variant("v1")) == [((TABBY, BEAGLE), 0.5, "scored")]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"variant_id": "v1", "class": None, "probability": 0.5}, "got an empty cell"),
        ({"variant_id": None, "class": TABBY, "probability": 0.5}, "got an empty cell"),
        ({"variant_id": "v1", "class": TABBY, "probability": None}, "from 0 to 1 in row 3"),
        ({"variant_id": "v1", "class": b"\xff", "probability": 0.5}, "text in UTF-8 in row 3"),
    ],
)
def test_what_a_row_of_parquet_lacks_is_said(tmp_path: Path, row: dict[str, object], said: str) -> None:
    whole = {"variant_id": "v0", "class": TABBY.encode() if row["class"] == b"\xff" else TABBY, "probability": 0.5}
    pq.write_table(pa.Table.from_pylist([whole, row]), tmp_path / "answers.parquet")
    with pytest.raises(UserError, match=said) as error:
        load_model(f"predictions:{tmp_path / 'answers.parquet'}")
    assert "\n" not in str(error.value)


def test_lists_of_unequal_length_are_said(tmp_path: Path) -> None:
    table = pa.table({"variant_id": ["v1"], "class": [[BEAGLE, TABBY]], "probability": [[0.25]]})
    pq.write_table(table, tmp_path / "answers.parquet")
    with pytest.raises(UserError, match="as many probabilities as classes in row 2"):
        load_model(f"predictions:{tmp_path / 'answers.parquet'}")


def test_damaged_parquet_is_said_in_one_line(tmp_path: Path) -> None:
    table = pa.table({"variant_id": ["v1"], "class": [TABBY], "probability": [0.5]})
    pq.write_table(table, tmp_path / "answers.parquet")
    data = (tmp_path / "answers.parquet").read_bytes()
    (tmp_path / "answers.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(UserError, match=r"answers\.parquet: it is damaged") as error:
        load_model(f"predictions:{tmp_path / 'answers.parquet'}")
    assert "\n" not in str(error.value)


def test_torch_models_without_torch_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, address, extra in (
        ("timm", "timm:resnet50.a1_in1k", "torch"),
        ("torchvision", "torchvision:resnet50@IMAGENET1K_V2", "torch"),
        ("transformers", "hf:org/name@main", "torch"),
        ("open_clip", "open_clip:ViT-B-32/openai", "clip"),
    ):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(
            UserError, match=rf"'{module}', which is not installed; run: pip install 'counterfoil\[{extra}\]'"
        ):
            load_model(address)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("picture,class\na,tabby\n", "expected a column 'variant_id'"),
        ("file,class,probability\na,tabby,1.5\n", "from 0 to 1 in row 2"),
        ("file,class,probability\na,tabby,\n", "from 0 to 1 in row 2"),
        ("file,class\na,tabby\na,tabby\n", "expected each class once"),
        ("file,class\na,tabby,3\n", "row 2 has another number"),
        ("file,class\n", "got none"),
        ("<!DOCTYPE html>", "it is a web page"),
        ("", "it is empty"),
    ],
)
def test_a_wrong_file_says_what_was_expected(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "answers.csv").write_text(text)
    with pytest.raises(UserError, match=said) as error:
        load_model(f"predictions:{tmp_path / 'answers.csv'}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("address", "offered"),
    [
        ("resnet50.a1_in1k", "'timm:resnet50.a1_in1k'"),
        ("resnet50", "'timm:resnet50.TAG' or 'torchvision:resnet50@WEIGHTS' (in full: 'timm:resnet50.a1_in1k',"),
        ("microsoft/resnet-50", "'hf:microsoft/resnet-50'"),
        ("tim:resnet50.a1_in1k", "'timm:resnet50.a1_in1k'"),
        ("openclip:ViT-B-32/openai", "'open_clip:ViT-B-32/openai'"),
        ("answers.csv", "'predictions:answers.csv'"),
        ("net.pt", "'torchscript:net.pt'"),
        ("net.safetensors", "'safetensors:ARCH:net.safetensors'"),
    ],
)
def test_an_address_without_its_kind_is_offered_the_exact_string(address: str, offered: str) -> None:
    with pytest.raises(UserError) as error:
        load_model(address)
    assert offered in str(error.value)
