"""The demo photos: labels, masks, and the demo itself."""

from __future__ import annotations

import csv
import json
from collections import Counter
from importlib import resources
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from PIL import Image

from counterfoil.assets.cache import cache_folder
from counterfoil.cli import demo_commands
from counterfoil.cli.demo_commands import CAPTION_HEIGHT, PAINTED, demo_config, paint_demo, print_repair_demo
from counterfoil.labels.label_space import imagenet1k
from counterfoil.models.model_loaders import load_model
from counterfoil.runner import execute
from counterfoil.segmentation import SalienceNetwork
from counterfoil.sources.demo_photos import DemoSource
from counterfoil.store.result_cache import VARIABLE
from opened_files import opened_files

NO_NETWORK_IS_RIGHT = {"castle", "digital clock", "hook", "impala", "jeep"}  # all of them name it among their five best


def rows() -> list[dict[str, str]]:
    text = resources.files("counterfoil.assets").joinpath("photos.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_labels_are_those_in_the_file_names() -> None:
    photos = [row for row in rows() if row["asset"] != "scikit-image"]
    assert len(photos) == 70
    for row in photos:
        index = int(PurePosixPath(row["file"]).stem.rpartition("_")[2])
        assert int(row["index"]) == index
        assert row["wnid"] == imagenet1k().labels[index]
        assert row["name"] == imagenet1k().names[index]


def test_a_photo_that_is_left_out_says_why() -> None:
    samples, skipped = DemoSource().samples()
    assert len(samples) + len(skipped) == 70
    assert all(row.reason for row in skipped)


def test_listing_the_photos_reads_each_of_them_at_most_twice() -> None:
    with opened_files() as opened:
        DemoSource().samples()  # once for the check of the bundle, once for the sample's own digest
    assert max(Counter(path for path in opened if path.suffix in {".jpg", ".png"}).values()) <= 2


def test_every_mask_fits_its_photo_and_leaves_object_and_background() -> None:
    source = DemoSource()
    for sample in source.samples()[0]:
        image, mask = source.read(sample)
        assert mask is not None
        assert mask.shape == image.shape[:2]
        assert 0.005 < (mask >= 128).mean() < 0.9, sample.id


def test_the_networks_agree_with_the_labels() -> None:
    source = DemoSource()
    samples, _ = source.samples()
    images = [source.read(sample)[0] for sample in samples]
    ranks = []
    for name in ("efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2", "pp-lcnetv2"):
        model = load_model(f"embedded:{name}")
        scores = model(images)
        own = scores[np.arange(len(samples)), [model.labels.index(sample.label) for sample in samples]]
        ranks.append((scores > own[:, None]).sum(axis=1))
    best = np.min(ranks, axis=0)
    assert best.max() < 5
    doubtful = {imagenet1k().name_of(sample.label) for sample, rank in zip(samples, best, strict=True) if rank > 0}
    assert doubtful <= NO_NETWORK_IS_RIGHT


def test_the_demo_ends_in_a_report(tmp_path: Path) -> None:
    result = execute(demo_config(4, None, "counterfoil demo --limit 4"), tmp_path)
    report = result.report(tmp_path)
    assert 50_000 < report.stat().st_size < 5_000_000
    assert {drop.model for drop in result.drops} == set(result.plan.model_names)


def test_the_demo_shows_a_photo_beside_its_plainer_and_its_more_complex_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(PAINTED) <= {sample.id for sample in DemoSource().samples()[0]}
    cache = tmp_path / "cache"
    cache.mkdir()
    for entry in cache_folder().iterdir():
        if entry.name != "results":
            (cache / entry.name).symlink_to(entry)
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(cache))
    monkeypatch.setenv(VARIABLE, "100")
    painted = paint_demo(tmp_path, PAINTED[:1])
    first = painted.read_bytes()
    monkeypatch.setattr(demo_commands, "PaintedComplexity", None)  # would be called for what is not stored
    assert paint_demo(tmp_path, PAINTED[:1]).read_bytes() == first
    sheet = np.asarray(Image.open(painted).convert("L"), np.float64)
    assert sheet.shape == (CAPTION_HEIGHT + 256, 3 * 256)
    assert all(caption.min() < 128 for caption in np.hsplit(sheet[:CAPTION_HEIGHT], 3))
    parts = np.hsplit(sheet[CAPTION_HEIGHT:], 3)
    photo, plainer, richer = (np.abs(np.fft.fft2(part)).mean() for part in parts)
    assert plainer < photo < richer


def test_the_demo_ends_with_a_verdict_on_a_repair_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_repair_demo(tmp_path, 30, None)
    record = json.loads((tmp_path / "repair" / "repair.json").read_text())
    assert f"by zoom: {record['verdict']}; drop of small objects" in capsys.readouterr().out
    assert Image.open(tmp_path / "repair" / "before_after.png").width >= 256
    model = load_model(f"onnx:{tmp_path / 'repair' / 'model.onnx'}")
    assert model.labels == load_model("embedded:efficientnet-lite0").labels


def test_a_demo_of_few_photos_says_that_it_repairs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_repair_demo(tmp_path, 2, None)
    assert capsys.readouterr().out == "no repair: it takes at least 30 photos, and --limit is 2\n"
    assert list(tmp_path.iterdir()) == []


def test_the_segmenter_finds_the_objects_that_we_masked_by_hand(assets: object) -> None:
    source = DemoSource()
    samples, _ = source.samples()
    segmenter = SalienceNetwork(assets("u2netp"))  # type: ignore[operator]
    overlaps = []
    for sample in samples[::4]:  # 17 photos: the median of a sample decides, and the network takes 0.6 s for each
        image, mask = source.read(sample)
        assert mask is not None
        found, wanted = segmenter(image).mask.values >= 128, mask >= 128
        overlaps.append((found & wanted).sum() / (found | wanted).sum())
    assert np.median(overlaps) > 0.75
