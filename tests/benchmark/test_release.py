"""From a workspace to a benchmark: what goes in, what is written of it, and that the same gives the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from PIL import Image

from counterfoil.benchmark.frozen_benchmark import open_benchmark
from counterfoil.benchmark.layouts import LAYOUTS, LayoutName
from counterfoil.benchmark.manifest import ManifestRow
from counterfoil.benchmark.writer import BenchmarkDraft, Title, write_benchmark
from counterfoil.builder import build_pictures
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.labels.label_space import custom_label_space
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parquet import read_table
from counterfoil.store.picture_collection import Collection
from counterfoil.store.workspace import Workspace
from counterfoil.types import AnnotatorRecord
from freeze_workspaces import RECIPE, SURROGATES, contents, frozen, ids_of, keep_mined, keep_verdicts, write_workspace
from planted import write_photos


@pytest.fixture
def workspace(built: Workspace) -> Workspace:
    """The one workspace of this file, with neither mining nor verdicts."""
    for name in ("mined.json", "verified.json"):
        (built.folder / name).unlink(missing_ok=True)
    return Workspace(built.folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return write_workspace(tmp_path_factory.mktemp("freeze"))


class Files:
    """The workspace's pictures, as a benchmark is written from them."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace

    def size(self, entry: ManifestRow) -> int:
        return len(self.read(entry))

    def read(self, entry: ManifestRow) -> bytes:
        return (self.workspace.folder / entry.stored.file).read_bytes()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_pixels_come_back_from_every_layout(workspace: Workspace, tmp_path: Path, layout: LayoutName) -> None:
    frozen(workspace, tmp_path / "set", layout=layout, shard_bytes=60_000)
    benchmark: Collection = open_benchmark(tmp_path / "set")
    assert len(benchmark.pictures) == len(workspace.pictures) == 20
    there = {one.variant.id: workspace.read(one) for one in workspace.pictures}
    for stored in benchmark.pictures:
        np.testing.assert_array_equal(benchmark.read(stored), there[stored.variant.id])
    if layout != "folder":
        assert len(list((tmp_path / "set" / "data").iterdir())) > 2


def test_layouts_differ_in_digest_but_not_in_content(workspace: Workspace, tmp_path: Path) -> None:
    records = [frozen(workspace, tmp_path / layout, layout=layout).record for layout in LAYOUTS]
    assert len({record.digest for record in records}) == 3
    assert len({record.content_digest for record in records}) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_freezing_twice_gives_the_same_bytes(workspace: Workspace, tmp_path: Path, layout: LayoutName) -> None:
    first = frozen(workspace, tmp_path / "first", layout=layout)
    second = frozen(workspace, tmp_path / "second", layout=layout)
    assert first.record.digest == second.record.digest
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


def test_the_order_of_the_pictures_changes_nothing(workspace: Workspace, tmp_path: Path) -> None:
    entries = tuple(ManifestRow(one, one.variant.label) for one in workspace.pictures)
    space = custom_label_space("own", sorted({one.variant.label for one in workspace.pictures}))
    for name, order in (("one", entries), ("other", entries[::-1])):
        write_benchmark(
            BenchmarkDraft(title=Title("planted", "1.0.0"), layout="parquet", entries=order, space=space),
            Files(workspace),
            tmp_path / name,
        )
    assert contents(tmp_path / "one") == contents(tmp_path / "other")


def test_pictures_are_what_mining_kept_and_people_confirmed_with_their_originals(
    workspace: Workspace, tmp_path: Path
) -> None:
    small = ids_of(workspace, "size")
    keep_mined(workspace, small)
    keep_verdicts(workspace, {small[0]: True, small[1]: False})
    record = frozen(workspace, tmp_path / "set").record
    benchmark = open_benchmark(tmp_path / "set")
    assert [one.variant.edit for one in benchmark.pictures] == ["original", "control", "size"]
    assert benchmark.pictures[-1].variant.id == small[0]
    assert len({one.variant.sample_id for one in benchmark.pictures}) == 1
    assert record.counts.left_out == {
        "not kept by mining": 4, "rejected by people": 1, "answered by too few people": len(small) - 2,
    }  # fmt: skip
    assert benchmark.surrogates == SURROGATES
    assert "low by construction" in " ".join(benchmark.notes)
    assert record.verification is not None
    assert record.verification.confirmed == 1


def test_undecided_pictures_are_not_counted_as_rejected(workspace: Workspace, tmp_path: Path) -> None:
    first, second, third, *_ = ids_of(workspace, "size")
    keep_verdicts(workspace, {first: True, second: False}, undecided=[third])
    record = frozen(workspace, tmp_path / "set").record
    assert record.counts.left_out == {
        "rejected by people": 1, "answered by too few people": 12 - 3, "left undecided by people": 1,
    }  # fmt: skip


def test_what_the_controls_say_of_annotators_stands_in_the_benchmark_and_a_doubt_is_told(
    workspace: Workspace, tmp_path: Path
) -> None:
    careful, careless = (
        AnnotatorRecord(answers=16, controls=8, controls_right=8, repeats=4, repeats_same=4, median_seconds=2.5),
        AnnotatorRecord(
            answers=16, controls=8, controls_right=2, repeats=0, repeats_same=0, median_seconds=0.2, counted=False
        ),
    )
    names = dict.fromkeys(ids_of(workspace, "size"), True)
    keep_verdicts(workspace, names, records=(careful, careless), doubts=("people may not have looked",))
    arguments = ["freeze", str(workspace.folder), "--name", "x", "--version", "1.0.0", "--out", str(tmp_path / "set")]
    told = CliRunner().invoke(commands, arguments, catch_exceptions=False).output
    assert "WARNING: what people said is in doubt: people may not have looked" in told
    card = (tmp_path / "set" / "README.md").read_text()
    assert "- **Note**: what people said is in doubt: people may not have looked." in card
    assert "| 1 | 16 | 8 of 8 (100 %) | 4 of 4 (100 %) | 2.5 |" in card
    assert "| 2 (left out) | 16 | 2 of 8 (25 %) | none shown | 0.20 |" in card
    stored = json.loads((tmp_path / "set" / "benchmark.json").read_text())
    assert stored["verification"]["records"] == [asdict(careful), asdict(careless)]
    assert stored["verification"]["doubts"] == ["people may not have looked"]
    assert "what people said is in doubt: people may not have looked" in open_benchmark(tmp_path / "set").notes


def test_a_benchmark_that_says_nothing_of_annotators_keeps_its_digest(workspace: Workspace, tmp_path: Path) -> None:
    keep_verdicts(workspace, dict.fromkeys(ids_of(workspace, "size"), True))
    frozen(workspace, tmp_path / "set")
    stored = json.loads((tmp_path / "set" / "benchmark.json").read_text())
    assert set(stored["verification"]) == {"rule", "questions", "annotators", "agreement", "confirmed"}  # as before
    digest = stored.pop("digest")
    tables = {name: {"content": note["content"]} for name, note in stored["files"].items() if "content" in note}
    assert set(tables) == {"manifest.parquet", "croissant.json"}
    stored["files"] |= tables
    text = json.dumps(stored, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert digest == hashlib.sha256(text.encode()).hexdigest()


def test_an_original_that_people_rejected_is_no_reference(workspace: Workspace, tmp_path: Path) -> None:
    (original, *_), small = ids_of(workspace, "original"), ids_of(workspace, "size")
    keep_verdicts(workspace, {original: False, **dict.fromkeys(small, True)})
    frozen(workspace, tmp_path / "set")
    there = {one.variant.id for one in open_benchmark(tmp_path / "set").pictures}
    assert set(ids_of(workspace, "original")) - there == {original}


def test_flags_say_otherwise(workspace: Workspace, tmp_path: Path) -> None:
    small = ids_of(workspace, "size")
    keep_mined(workspace, small[:2])
    keep_verdicts(workspace, {small[0]: True})
    assert frozen(workspace, tmp_path / "a", mined=False, verified=False).record.counts.test == 12
    assert frozen(workspace, tmp_path / "b", verified=False, originals=False).record.counts.pictures == 2
    assert frozen(workspace, tmp_path / "c", mined=False).record.counts.test == 1
    assert open_benchmark(tmp_path / "a").surrogates == {}


def test_the_manifest_says_where_every_picture_comes_from(workspace: Workspace, tmp_path: Path) -> None:
    small = ids_of(workspace, "size")
    keep_verdicts(workspace, {small[0]: True})
    frozen(workspace, tmp_path / "set")
    table = read_table(tmp_path / "set" / "manifest.parquet")
    source = {one.variant.id: one for one in workspace.pictures}
    for row, name in enumerate(table["id"]):
        stored, path = source[name], tmp_path / "set" / table["file"][row]
        assert table["file_sha256"][row] == hashlib.sha256(path.read_bytes()).hexdigest()
        pixels = np.asarray(Image.open(path)).tobytes()
        assert table["pixel_sha256"][row] == hashlib.sha256(pixels).hexdigest() == stored.sha256
        assert table["source_digest"][row] == stored.sample_digest
        assert table["settings"][row] == stored.variant.settings
        assert int(table["seed"][row]) == stored.variant.seed
    row = list(table["id"]).index(small[0])
    assert json.loads(table["answers"][row]) == {"object": {"yes": 3}}
    assert (table["verdict"][row], json.loads(table["decided"][row])) == ("confirmed", {"object": "yes"})


def test_painted_pictures_come_with_painter_prompt_and_the_classes_of_their_recipe(tmp_path: Path) -> None:
    asked = ["--recipe", "imagenet-d", "--painter", "python:painted:words", "--out", str(tmp_path / "workspace")]
    chosen = ["--categories", "backpack,umbrella", "--values", "beach,wood"]
    assert CliRunner().invoke(commands, ["paint", *asked, *chosen], catch_exceptions=False).exit_code == 0
    record = frozen(Workspace(tmp_path / "workspace"), tmp_path / "set").record
    assert (record.labels.space, record.counts.test, record.counts.reference) == ("imagenet-d", 4, 2)
    table = read_table(tmp_path / "set" / "manifest.parquet")
    assert set(table["painter"]) == {"python:painted:words"}
    words = dict(zip(table["attribute"], table["prompt"], strict=True))
    assert words["original"] == "a photo of an umbrella"
    assert words["material"] == "an umbrella made of wood"
    assert set(table["licence"]) == {"unknown"}


def test_the_card_tells_counts_biases_and_how_it_was_verified(workspace: Workspace, tmp_path: Path) -> None:
    keep_mined(workspace, ids_of(workspace, "size"))
    keep_verdicts(workspace, dict.fromkeys(ids_of(workspace, "size"), True))
    frozen(workspace, tmp_path / "set")
    card = (tmp_path / "set" / "README.md").read_text()
    _, front, text = card.split("---\n", 2)
    about = yaml.safe_load(front)
    assert about["configs"][0]["data_files"][0] == {"split": "test", "path": "data/test/**"}
    assert "| size | 8 |" in text
    measured = "90.0 [80.0, 95.0] | 0.50 [0.25, 0.75] | – | 0.50 [0.25, 0.75]"
    assert f"| Is the object recognisable? | 8 | {measured} |" in text
    assert "–: cannot be computed" in text
    assert "python:planted:answers_by_background chose the pictures" in text
    assert Image.open(tmp_path / "set" / "examples.jpg").size[0] > 500


def test_labels_of_imagenet_are_recognised(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 2)
    for folder in (images, masks):
        (folder / "crimson").rename(folder / "n02123045")
        (folder / "emerald").rename(folder / "n07920052")
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    build_pictures(
        RunConfig(source=open_source(images, masks), models=(), recipe=str(tmp_path / "recipe.yaml")),
        tmp_path / "workspace",
    )
    record = frozen(Workspace(tmp_path / "workspace"), tmp_path / "set").record
    assert record.labels.space == "imagenet1k"
    assert [(one.label, one.name, one.ids) for one in record.labels.classes] == [
        ("n02123045", "tabby", ("n02123045",)), ("n07920052", "espresso", ("n07920052",)),
    ]  # fmt: skip


def test_another_label_space_can_be_named(tmp_path: Path, workspace: Workspace) -> None:
    classes = {"crimson": ["red", "ruby"], "emerald": ["green"], "azure": ["blue"], "violet": [], "unused": ["grey"]}
    (tmp_path / "classes.json").write_text(json.dumps(classes))
    frozen(workspace, tmp_path / "set", classes=str(tmp_path / "classes.json"), scoring="subset")
    benchmark = open_benchmark(tmp_path / "set")
    assert benchmark.scoring == "subset"
    assert benchmark.space.labels == ("crimson", "emerald", "azure", "violet")
    assert benchmark.space.ids_of("crimson") == ("red", "ruby")
    assert benchmark.space.ids_of("violet") == ("violet",)
    with pytest.raises(UserError, match="'azure' is not there"):
        frozen(workspace, tmp_path / "other", classes="imagenet-d")


def test_no_verdicts_and_no_mining_are_said_in_one_line(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"there are none yet.*--unverified"):
        frozen(workspace, tmp_path / "set", verified=True)
    with pytest.raises(UserError, match="nothing was mined"):
        frozen(workspace, tmp_path / "set", mined=True)
    assert not list(tmp_path.iterdir())


def test_mining_and_verdicts_on_other_pictures_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    keep_mined(workspace, ids_of(workspace, "size"), digest="0" * 64)
    with pytest.raises(UserError, match="when it was mined"):
        frozen(workspace, tmp_path / "set")
    keep_verdicts(workspace, {}, digest="0" * 64)
    with pytest.raises(UserError, match="when people verified it"):
        frozen(workspace, tmp_path / "set", mined=False)


@pytest.mark.parametrize("text", ["[]", "{}", '{"kept": 5, "decisions": [1]}'])
def test_mining_and_verdicts_that_say_something_else_are_refused(
    workspace: Workspace, tmp_path: Path, text: str
) -> None:
    for name in ("mined.json", "verified.json"):
        (workspace.folder / name).write_text(text)
        with pytest.raises(UserError, match=rf"{name} as counterfoil writes it"):
            frozen(workspace, tmp_path / "set")
        (workspace.folder / name).unlink()


def test_a_damaged_table_of_the_workspace_is_said(workspace: Workspace, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(workspace.folder, tmp_path / "workspace"))
    data = bytearray((folder / "variants.parquet").read_bytes())
    data[40:90] = bytes(50)
    (folder / "variants.parquet").write_bytes(data)
    with pytest.raises(UserError, match=r"variants\.parquet(: it is damaged| is not as it was written)"):
        frozen(Workspace(folder), tmp_path / "set")


def test_an_empty_choice_says_why(workspace: Workspace, tmp_path: Path) -> None:
    keep_mined(workspace, [])
    with pytest.raises(UserError, match="got none: 12 not kept by mining"):
        frozen(workspace, tmp_path / "set")


def test_a_picture_of_the_workspace_that_changed_is_refused(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path, photos=2)
    path = workspace.folder / workspace.pictures[-1].file
    whole = path.read_bytes()
    image = np.array(Image.open(path))
    image[0, 0] ^= 1
    Image.fromarray(image).save(path)
    with pytest.raises(UserError, match="its pixels have changed"):
        frozen(workspace, tmp_path / "set")
    path.write_bytes(whole[:50])
    with pytest.raises(UserError, match="is no picture"):
        frozen(workspace, tmp_path / "set")
    path.unlink()
    with pytest.raises(UserError, match="but it is not there"):
        frozen(workspace, tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_frozen_version_is_never_overwritten(workspace: Workspace, tmp_path: Path) -> None:
    frozen(workspace, tmp_path / "set")
    before = contents(tmp_path / "set")
    with pytest.raises(UserError, match="never overwritten"):
        frozen(workspace, tmp_path / "set", "1.0.1")
    assert contents(tmp_path / "set") == before


@pytest.mark.parametrize(
    ("options", "line"),
    [(["--version", "1.0"], "such as 1.0.0"), (["--version", "1.0.0", "--published", "May"], "such as 2027-01-31"),
     (["--version", "1.0.0", "--published", "2027-13-31"], "such as 2027-01-31"),
     (["--version", "1.0.0", "--url", "example.org"], "such as https://example.org/benchmark"),
     (["--version", "1.0.0", "--description", "\udcff"], "in UTF-8")],
)  # fmt: skip
def test_bad_titles_are_refused(workspace: Workspace, tmp_path: Path, options: list[str], line: str) -> None:
    arguments = ["freeze", str(workspace.folder), "--name", "x", "--out", str(tmp_path / "set"), *options]
    done = CliRunner().invoke(commands, arguments)
    assert isinstance(done.exception, UserError)
    assert line in str(done.exception)


def test_the_command_says_what_it_froze(workspace: Workspace, tmp_path: Path) -> None:
    keep_mined(workspace, ids_of(workspace, "size"))
    out = tmp_path / "set"
    arguments = ["freeze", str(workspace.folder), "--name", "planted", "--version", "1.0.0", "--out", str(out)]
    done = CliRunner().invoke(commands, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "pictures: 8 of 4 classes, and 8 originals and controls to compare with" in done.output
    assert "left out: 4 pictures, not kept by mining" in done.output
    assert f"digest: {open_benchmark(out).digest}" in done.output
