"""XImageNet-12: scenarios over the objects of twelve classes, one folder a scenario."""

from __future__ import annotations

from collections.abc import Mapping

from counterfoil.labels import ximagenet12
from counterfoil.published.archive import Archive
from counterfoil.published.exhibits import ORIGINAL, Found, Kind, exhibits_of, once
from counterfoil.published.finding import Findings, Place, find, refuse_none, stray_rows
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
ALSO_CALLED = {  # other names of the same folders: in the authors' scripts, and as their table of results has them
    "blur_bg": "blur_background",
    "blur_obj": "blur_object",
    "color_r": "image_r",
    "color_g": "image_g",
    "color_b": "image_b",
    "seg_img": "segmented_image",
    "segmented_image_transparent": "transparent_img",
    "combine": "rand_bg",  # what the script that lays objects on other photos writes to
}
CONTAMINATION = (
    "The originals are ImageNet training pictures: a model trained on ImageNet has seen them, so its accuracies here"
    " say less than on pictures that are new to it."
)
_SPLIT = "(?:train|val|test)/"  # where somebody split a scenario for training, as the authors' script tells to
_LAYOUT = rf"(?!{_SPLIT})(?P<scenario>[^/]+)/(?:{_SPLIT})?(?P<wnid>{'|'.join(ximagenet12().labels)})/"
_BESIDE = r"(?:[^/]*mask[^/]*|annotations?|json)/.*"
_CUT_OUT = "_segmented"  # what the script for transparent pictures adds to a file's stem


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    scenarios = {_folder(name) for name in _findings(tree).folders("scenario")}
    return len(scenarios & KINDS.keys()) > 1


def read(tree: Tree) -> Archive:
    """Every scenario's pictures; folders of scenarios that the authors added later go by their own name."""
    findings = _findings(tree)
    refuse_none(findings.places, NAME, EXPECTED, tree)
    exhibits, twice = once(exhibits_of(NAME, tree.sizes.path, map(_found, findings.places)))
    return Archive(
        NAME, tree, exhibits, ximagenet12(),
        skipped=(*twice, *stray_rows(NAME, findings.strays)), notes=tuple(_notes(findings.folders("scenario"))),
    )  # fmt: skip


def _findings(tree: Tree) -> Findings:
    """Masks have the layout of a scenario, and are none; scenarios may be grouped in folders."""
    findings = find(tree, _LAYOUT, beside=_BESIDE, any_root=True)
    shown = findings.places.where(lambda parts: "mask" not in parts["scenario"].lower())
    return Findings(shown, findings.strays, findings.root)


def _found(place: Place) -> Found:
    """One object in all scenarios, whose files may end otherwise."""
    wnid, stem = place.parts["wnid"], place.name.rpartition(".")[0].removesuffix(_CUT_OUT)
    return Found(place.at, f"{wnid}/{stem}", wnid, _kind(place.parts["scenario"]))


def _folder(scenario: str) -> str:
    """A scenario by the name that the authors' scripts give its folder."""
    return ALSO_CALLED.get(scenario.lower(), scenario)


def _kind(scenario: str) -> Kind:
    name = _folder(scenario)
    return KINDS.get(name) or Kind("background", name, "scenario")


def _notes(scenarios: Mapping[str, int]) -> list[str]:
    notes = [CONTAMINATION]
    absent = [name for name in KINDS if name not in {_folder(scenario) for scenario in scenarios}]
    if absent:
        notes.append(f"The folders {', '.join(absent)} are missing.")
    own = sorted(name for name in scenarios if _folder(name) not in KINDS)
    if own:
        notes.append(f"Scenarios that go by their folder's name: {', '.join(own)}.")
    return notes
