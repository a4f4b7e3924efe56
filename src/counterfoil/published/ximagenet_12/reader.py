"""Reader of XImageNet-12: a folder per scenario over twelve classes."""

from __future__ import annotations

from collections.abc import Mapping

from counterfoil.labels.benchmark_classes import ximagenet12
from counterfoil.published.archive import (
    ORIGINAL,
    Archive,
    ArchiveCondition,
    ArchivePicture,
    collect_pictures,
    drop_duplicates,
)
from counterfoil.published.file_tree import Tree
from counterfoil.published.layout_detection import LayoutFiles, MatchedFile, match_layout, require_pictures, skip_strays

NAME = "ximagenet-12"
EXPECTED = "image/<wnid>/<wnid>_<n>.JPEG and a folder for each scenario, such as blur_background or image_r"
KINDS: dict[str, ArchiveCondition] = {
    "image": ORIGINAL,
    "blur_background": ArchiveCondition("blur", "blur", "background"),
    "blur_object": ArchiveCondition("blur", "blur", "object"),
    "image_r": ArchiveCondition("colour", "background-hue", "red"),
    "image_g": ArchiveCondition("colour", "background-hue", "green"),
    "image_b": ArchiveCondition("colour", "background-hue", "blue"),
    "image_rainbow": ArchiveCondition("colour", "background-rainbow", "shift"),
    "segmented_image": ArchiveCondition("background", "segmented", "black"),
    "transparent_img": ArchiveCondition("background", "segmented", "transparent"),
}
ALSO_CALLED = {  # other names of the same folders: in the authors' scripts and in their table of results
    "blur_bg": "blur_background",
    "blur_obj": "blur_object",
    "color_r": "image_r",
    "color_g": "image_g",
    "color_b": "image_b",
    "seg_img": "segmented_image",
    "segmented_image_transparent": "transparent_img",
    "combine": "rand_bg",  # output folder of the script that puts objects on other photos
}
CONTAMINATION = (
    "The originals are ImageNet training pictures: a model trained on ImageNet has seen them, so its accuracies here"
    " say less than on pictures that are new to it."
)
_SPLIT = "(?:train|val|test)/"  # splits of a scenario for training, as the authors' script suggests
_LAYOUT = rf"(?!{_SPLIT})(?P<scenario>[^/]+)/(?:{_SPLIT})?(?P<wnid>{'|'.join(ximagenet12().labels)})/"
_BESIDE = r"(?:[^/]*mask[^/]*|annotations?|json)/.*"
_CUT_OUT = "_segmented"  # what the script for transparent pictures appends to a file's stem


def fits(tree: Tree) -> bool:
    """Whether a tree looks like this archive."""
    scenarios = {_folder(name) for name in _match_scenarios(tree).folders("scenario")}
    return len(scenarios & KINDS.keys()) > 1


def read(tree: Tree) -> Archive:
    """Read every scenario's pictures; scenarios that the authors added later keep their folder's name."""
    findings = _match_scenarios(tree)
    require_pictures(findings.places, NAME, EXPECTED, tree)
    pictures, twice = drop_duplicates(collect_pictures(NAME, tree.sizes.path, map(_read_picture, findings.places)))
    return Archive(
        name=NAME, tree=tree, pictures=pictures, space=ximagenet12(),
        skipped=(*twice, *skip_strays(NAME, findings.strays)), notes=tuple(_notes(findings.folders("scenario"))),
    )  # fmt: skip


def _match_scenarios(tree: Tree) -> LayoutFiles:
    """Match the scenarios, which may be grouped in folders; folders of masks have the same layout and are left out."""
    findings = match_layout(tree, _LAYOUT, beside=_BESIDE, any_root=True)
    shown = findings.places.where(lambda parts: "mask" not in parts["scenario"].lower())
    return LayoutFiles(shown, findings.strays, findings.root)


def _read_picture(place: MatchedFile) -> ArchivePicture:
    """One picture; files of the same object in other scenarios may have another ending."""
    wnid, stem = place.parts["wnid"], place.name.rpartition(".")[0].removesuffix(_CUT_OUT)
    return ArchivePicture(place.at, f"{wnid}/{stem}", wnid, _kind(place.parts["scenario"]))


def _folder(scenario: str) -> str:
    """The name that the authors' scripts give a scenario's folder."""
    return ALSO_CALLED.get(scenario.lower(), scenario)


def _kind(scenario: str) -> ArchiveCondition:
    name = _folder(scenario)
    return KINDS.get(name) or ArchiveCondition("background", name, "scenario")


def _notes(scenarios: Mapping[str, int]) -> list[str]:
    notes = [CONTAMINATION]
    absent = [name for name in KINDS if name not in {_folder(scenario) for scenario in scenarios}]
    if absent:
        notes.append(f"The folders {', '.join(absent)} are missing.")
    own = sorted(name for name in scenarios if _folder(name) not in KINDS)
    if own:
        notes.append(f"Scenarios that go by their folder's name: {', '.join(own)}.")
    return notes
