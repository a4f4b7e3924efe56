"""A whole run with a vision-language model: from photos over HTTP to drops."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import cv2
import numpy as np
import pytest

import counterfoil as cf
from counterfoil.models.model_loaders import ADDRESSES, load_model
from counterfoil.models.vlm import read_usage
from counterfoil.store.parquet import read_table
from locations import DATA
from planted import LABELS, Planted, write_photos
from vlm_server import Exchange, FakeEndpoint, choose, fail, serving

KEY = "sk-secret-0123456789abcdef"
RECIPE = str(DATA / "geometry.yaml")
MODEL = f"vlm:planted?labels={','.join(LABELS)}&format=png"


def honest(exchange: Exchange) -> str:
    """Names the object's colour; where that is not on offer, the first choice."""
    pixels = np.asarray(exchange.image.convert("RGB"))
    seen = LABELS[Planted().answer(cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV))]
    return f"The main object is {seen if seen in exchange.choices else exchange.choices[0]}."


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> object:
    with serving() as started:
        settings = {"URL": started.url, "KEY": KEY, "FIRST_WAIT_SECONDS": "0.001", "ATTEMPTS": "2"}
        for name, value in settings.items():
            monkeypatch.setenv(f"COUNTERFOIL_VLM_{name}", value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        started.otherwise = choose(honest)
        yield started


def test_a_run_over_http_finds_what_the_model_cannot_see(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 12)
    result = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "out", workers=2)
    variants = read_table(tmp_path / "out" / "variants.parquet", ["id"])["id"]
    assert len(endpoint.exchanges) == len(variants)
    assert {row.n for row in result.drops} == {12}
    assert {row.accuracy_original for row in result.drops} == {100.0}
    assert {row.edit for row in result.drops if row.drop != 0} == {"object-removed"}
    result.report(tmp_path / "out")
    written = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert KEY.encode() not in written
    assert endpoint.url.encode() not in written


def test_every_variant_of_a_photo_was_asked_the_same_question(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "out", workers=2)
    assert len({exchange.question for exchange in endpoint.exchanges}) <= 4
    assert len(endpoint.exchanges) > 40


def test_the_address_is_listed_and_needs_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "vlm" in ADDRESSES
    for name in ("COUNTERFOIL_VLM_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(cf.UserError, match="expected the endpoint's base URL in COUNTERFOIL_VLM_URL"):
        load_model("vlm:some-model")


def test_a_second_run_asks_again_only_what_was_lost(endpoint: FakeEndpoint, tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 6)
    whole = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "whole", workers=2)
    asked = len(endpoint.exchanges)
    # by picture and not by turn: whichever thread comes first, every attempt for the same pictures is lost
    endpoint.otherwise = lambda exchange: (fail(503) if crc32(exchange.url.encode()) % 10 < 3 else choose(honest))(
        exchange
    )
    cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "lossy", workers=2)
    table = read_table(next((tmp_path / "lossy" / "predictions").iterdir()))
    lost = int((np.asarray(table["outcome"]) == "error").sum())
    assert 0 < lost < asked
    assert not np.asarray(table["correct"])[np.asarray(table["outcome"]) == "error"].any()
    endpoint.otherwise = choose(honest)
    endpoint.forget()
    again = cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "lossy", workers=2)
    assert len(endpoint.exchanges) == lost
    assert repr(again.drops) == repr(whole.drops)  # NaN does not equal itself
    tables = [next((tmp_path / name / "predictions").iterdir()).read_bytes() for name in ("whole", "lossy")]
    assert tables[0] == tables[1]
    endpoint.forget()
    cf.run(images, [MODEL], masks=masks, recipe=RECIPE, out=tmp_path / "lossy", workers=2)
    assert endpoint.exchanges == []
    usage = read_usage(tmp_path / "lossy")[MODEL]
    assert usage.outcomes == {"scored": asked, "error": lost}
    assert usage.output_tokens == 7 * asked
