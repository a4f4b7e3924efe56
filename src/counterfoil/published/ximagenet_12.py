"""XImageNet-12: scenarios over the objects of twelve classes, one folder a scenario."""

from __future__ import annotations

from collections.abc import Mapping

from counterfoil.labels import ximagenet12
from counterfoil.published.archive import ORIGINAL, Archive, Found, Kind, exhibits_of, once
from counterfoil.published.finding import PICTURE, Findings, find, refuse_none, stray_rows
from counterfoil.published.tree import Tree

NAME = "ximagenet-12"
EXPECTED = "image/<wnid>/<wnid>_<n>.JPEG and a folder for each scenario, such as blur_background or image_r"
KINDS: dict[str, Kind] = {
    "image": ORIGINAL,
    "blur_background": Kind("blur", "blur", "background"),
    "blur_object": Kind("blur", "blur", "object"),
    "image_r": Kind("colour", "background-hue", "red"),
    "image_g": Kind("colour", "background-hue", "green"),
    "image_b": Kind("colour", "background-hue", "blue"),
    "image_rainbow": Kind("colour", "background-rainbow", "shift"),
    "segmented_image": Kind("background", "segmented", "black"),
    "transparent_img": Kind("background", "segmented", "transparent"),
}
CONTAMINATION = (
    "The originals are ImageNet training pictures: a model trained on ImageNet has seen them, so its accuracies here"
    " say less than on pictures that are new to it."
)
_LAYOUT = rf"(?P<scenario>[^/]+)/(?P<wnid>{'|'.join(ximagenet12().labels)})/(?P<name>{PICTURE})"
_MASKS = r"(?:masks?|annotations?|json)/.*"


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    findings = _findings(tree)
    scenarios = findings.folders("scenario")
    return len(scenarios.keys() & KINDS.keys()) > 1


def read(tree: Tree) -> Archive:
    """Every scenario's pictures; folders of scenarios that the authors added later go by their own name."""
    findings = _findings(tree)
    refuse_none(findings.places, NAME, EXPECTED, tree)
    found, twice = once(
        Found(place.file, _sample(place.parts), place.parts["wnid"], _kind(place.parts["scenario"]))
        for place in findings.places
    )
    return Archive(
        NAME, tree, exhibits_of(NAME, found), ximagenet12(),
        skipped=(*twice, *stray_rows(NAME, findings.strays)), notes=tuple(_notes(findings.folders("scenario"))),
    )  # fmt: skip


def _findings(tree: Tree) -> Findings:
    """Masks have the layout of a scenario, and are none; scenarios may be grouped in folders."""
    findings = find(tree, _LAYOUT, beside=_MASKS, any_root=True)
    shown = [place for place in findings.places if place.parts["scenario"].lower() not in ("mask", "masks")]
    return Findings(tuple(shown), findings.strays, findings.root)


def _kind(scenario: str) -> Kind:
    return KINDS.get(scenario) or Kind("background", scenario, "scenario")


def _sample(parts: Mapping[str, str]) -> str:
    """One object in all scenarios, whose files may end otherwise."""
    return f"{parts['wnid']}/{parts['name'].rpartition('.')[0]}"


def _notes(scenarios: Mapping[str, int]) -> list[str]:
    notes = [CONTAMINATION]
    absent = [name for name in KINDS if name not in scenarios]
    if absent:
        notes.append(f"The folders {', '.join(absent)} are missing.")
    own = sorted(name for name in scenarios if name not in KINDS)
    if own:
        notes.append(f"Scenarios that go by their folder's name: {', '.join(own)}.")
    return notes
