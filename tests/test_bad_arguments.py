"""Wrong things given to public functions: one line of `UserError`, never an AttributeError or TypeError of ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import counterfoil as cf
from counterfoil.torch import Edited

IMAGE = np.zeros((20, 20, 3), np.uint8)
PHOTOS = [(IMAGE, "a"), (IMAGE, "b")]
WRONG: dict[str, Any] = {
    "None": None, "number": 5, "empty text": "", "unknown text": "nope", "bytes": b"x", "empty list": [],
    "empty dict": {}, "object": object(), "list of None": [None], "list of numbers": [5], "list of empty": [()],
    "dict of None": {"a": None}, "array": np.zeros(3), "missing path": Path("missing/place"),
    "null character": "a\0b", "long text": "x" * 400, "list of texts": ["a", "b"],
}  # fmt: skip


def even(images: Any) -> Any:
    """A model of two classes."""
    return np.full((len(images), 2), 0.5)


def run(**given: Any) -> Any:
    return cf.run(**{"images": PHOTOS, "models": {"even": even}, "labels": ["a", "b"], **given})


def darken(image: Any, mask: Any, rng: Any) -> Any:
    """An edit."""
    return image // 2


@functools.cache
def finished() -> cf.Result:
    """A result of one photo."""
    image, mask = np.full((48, 48, 3), 90, np.uint8), np.zeros((48, 48), np.uint8)
    image[12:30, 12:34], mask[12:30, 12:34] = (200, 40, 40), 255
    return cf.run([(image, "a", mask)], {"even": even}, labels=["a", "b"], edits=["object-grayscale"])


def freeze(**given: Any) -> Any:
    return cf.freeze(**{"workspace": "missing", "out": "out", "name": "n", "version": "1.0.0", **given})


def repair(**given: Any) -> Any:
    return cf.repair(**{"images": PHOTOS, "model": even, "labels": ["a", "b"], "out": "repaired", **given})


TEXTS = ("empty text", "unknown text", "null character", "long text")
# The functions by what is wrong, and which of the things above are right there, so that nothing may be raised.
CALLS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "run images": (lambda given: run(images=given), ()),
    "run models": (lambda given: run(models=given), ()),
    "run edits": (lambda given: run(edits=given), ("None",)),
    "run labels": (lambda given: run(labels=given), ("None", "list of texts")),
    "run masks": (lambda given: run(images="/nonexistent/photos", masks=given), ()),
    "run recipe": (lambda given: run(recipe=given), ("None",)),
    "run limit": (lambda given: run(limit=given), ("None", "number")),
    "run workers": (lambda given: run(workers=given), ("None", "number")),
    "run batch_size": (lambda given: run(batch_size=given), ("number",)),
    "run seed": (lambda given: run(seed=given), ("number",)),
    "run scoring": (lambda given: run(scoring=given), ()),
    "run classes": (lambda given: run(classes=given), ("None",)),
    "run options": (lambda given: run(options=given), ("None",)),
    "run transform": (lambda given: run(transform=given), ("None",)),
    "run segmenter": (lambda given: run(segmenter=given), ()),
    "run engine": (lambda given: run(engine=given), ()),
    "variants images": (lambda given: list(cf.variants(given, edits=["size"])), ()),
    "variants edits": (lambda given: list(cf.variants(PHOTOS, edits=given)), ("None",)),
    "build out": (lambda given: cf.build(PHOTOS, given, edits=["size"]), ("unknown text", "missing path")),
    "open_photos": (cf.open_photos, ()),
    "compare": (lambda given: cf.compare(given, given), ()),
    "compare names": (lambda given: cf.compare("a", "b", names=given), ()),
    "gate": (lambda given: cf.gate(given, max_drop={"size": 5}), ()),
    "gate against": (lambda given: cf.gate("/nonexistent/run", against=given), ()),
    "gate margin": (lambda given: cf.gate("/nonexistent/run", against="old", margin=given), ()),
    "gate max_drop": (lambda given: cf.gate("/nonexistent/run", max_drop=given), ()),
    "gate min_accuracy": (lambda given: cf.gate("/nonexistent/run", min_accuracy=given), ()),
    "gate bound": (lambda given: cf.gate("/nonexistent/run", max_drop=5, bound=given), ()),
    "show": (cf.show, ()),
    "mine original": (lambda given: cf.mine("work", even, original=given), ()),
    "mine": (lambda given: cf.mine(given, ["embedded:efficientnet-lite0"]), ()),
    "freeze": (lambda given: cf.freeze(given, "frozen", name="n", version="1.0.0"), ()),
    "evaluate": (lambda given: cf.evaluate(given, {"even": even}), ()),
    "evaluate labels": (lambda given: cf.evaluate("/nonexistent/benchmark", {"even": even}, labels=given), ()),
    "open_benchmark": (cf.open_benchmark, ()),
    "repair": (lambda given: cf.repair(given, out="repaired"), ()),
    "repair images": (lambda given: cf.repair(images=given, model=even, labels=["a", "b"], out="repaired"), ()),
    "repair model": (lambda given: cf.repair(images="/nonexistent/photos", model=given, out="repaired"), ()),
    "verify": (cf.verify, ()),
    "rebuild": (lambda given: cf.rebuild(given, "id"), ()),
    "rebuild id": (lambda given: cf.rebuild("/nonexistent/run", given), ()),
    "load_model": (cf.load_model, ()),
    "load_model options": (lambda given: cf.load_model("onnx:nope.onnx", options=given), ()),
    "load_model describe": (lambda given: cf.load_model("onnx:nope.onnx", describe=given), ()),
    "wrap_model": (cf.wrap_model, ()),
    "wrap_model labels": (lambda given: cf.wrap_model(even, labels=given), ("list of texts",)),
    "edit_named": (lambda given: cf.edit_named(given, {}), ()),
    "edit_named settings": (lambda given: cf.edit_named("size", given), ("empty dict",)),
    "edit": (lambda given: cf.edit(attribute=given)(even), ()),
    "check_model": (lambda given: cf.check_model(given, [IMAGE]), ()),
    "check_model images": (lambda given: cf.check_model(cf.wrap_model(even, labels=["a", "b"]), given), ()),
    "check_classifier": (lambda given: cf.check_classifier(given, [IMAGE]), ()),
    "check_edit pictures": (
        lambda given: cf.check_edit(cf.edits.Size(0.1), given), ("empty list", "empty dict", "empty text"),
    ),
    "check_source": (cf.check_source, ()),
    "check_painter": (lambda given: cf.check_painter(given, []), ()),
    "Workspace": (cf.Workspace, ()),
    "Size": (cf.edits.Size, ("None",)),
    "ModelOptions": (
        lambda given: cf.ModelOptions(device=given), ("unknown text", "empty text", "null character", "long text"),
    ),
    "run out": (lambda given: run(out=given), ("None", "unknown text", "missing path")),
    "show photo": (lambda given: cf.show(finished(), photo=given), ("None",)),
    "show attribute": (lambda given: cf.show(finished(), attribute=given), ("None",)),
    "show model": (lambda given: cf.show(finished(), model=given), ("None",)),
    "show limit": (lambda given: cf.show(finished(), limit=given), ("None", "number")),
    "compare first_model": (lambda given: cf.compare(finished(), finished(), first_model=given), ()),
    "gate model": (lambda given: cf.gate(finished(), max_drop=5, model=given), ("None",)),
    "report": (lambda given: finished().report(given), ("unknown text", "missing path")),
    "advise": (cf.advise, ()),
    "freeze name": (lambda given: cf.freeze("/nonexistent/work", "out", name=given, version="1.0.0"), ()),
    "freeze version": (lambda given: cf.freeze("/nonexistent/work", "out", name="n", version=given), ()),
    "freeze layout": (lambda given: freeze(layout=given), ()),
    "freeze licence": (lambda given: freeze(licence=given), ()),
    "freeze description": (lambda given: freeze(description=given), ()),
    "freeze scoring": (lambda given: freeze(scoring=given), ()),
    "build split": (lambda given: cf.build(PHOTOS, "work", edits=["size"], split=given), ("None",)),
    "build fold": (lambda given: cf.build(PHOTOS, "work", edits=["size"], split="none.json", fold=given), ()),
    "repair method": (lambda given: repair(method=given), ()),
    "repair settings": (lambda given: repair(settings=given), ()),
    "repair recipe": (lambda given: repair(recipe=given), ()),
    "repair allow_loss": (lambda given: repair(allow_loss=given), ()),
    "repair elsewhere": (lambda given: repair(elsewhere=given), ()),
    "repair parts": (lambda given: repair(parts=given), ()),
    "repair pictures": (lambda given: repair(pictures=given), ()),
    "edit attribute": (lambda given: cf.edit(darken, attribute=given), TEXTS),
    "edit name": (lambda given: cf.edit(darken, name=given), TEXTS),
    "ModelOptions precision": (lambda given: cf.ModelOptions(precision=given), ()),
    "ModelOptions runtime": (lambda given: cf.ModelOptions(runtime=given), ()),
    "ModelOptions batch_size": (lambda given: cf.ModelOptions(batch_size=given), ("None", "number")),
    "Edited": (lambda given: Edited(given, ["size"]), ()),
    "Edited edits": (lambda given: Edited(PHOTOS, given), ()),
    "Edited transform": (lambda given: Edited(PHOTOS, ["size"], transform=given), ("None",)),
    "Edited unedited": (lambda given: Edited(PHOTOS, ["size"], unedited=given), ()),
    "Edited copies": (lambda given: Edited(PHOTOS, ["size"], copies=given), ("None", "number")),
    "Edited epoch": (lambda given: Edited(PHOTOS, ["size"]).set_epoch(given), ("number",)),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_is_refused_in_one_line(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, right = CALLS[name]
    for kind, given in WRONG.items():
        if kind in right:
            continue
        with pytest.raises(cf.UserError) as raised:
            call(given)
        assert "\n" not in str(raised.value), (name, kind)
