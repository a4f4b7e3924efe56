"""The differences between two versions of a benchmark, the version step they require, and CHANGELOG.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from counterfoil.benchmark.benchmark_json import BenchmarkRecord, read_benchmark_record
from counterfoil.benchmark.integrity import is_unchanged
from counterfoil.benchmark.manifest import Manifest, read_manifest
from counterfoil.errors import UserError
from counterfoil.store.files import MANIFEST

CHANGELOG = "CHANGELOG.md"
_TOP = "# Changelog\n"
Step: TypeAlias = Literal["none", "patch", "minor", "major"]
_KEY = ("sample_id", "edit", "level", "replicate")  # an id changes with the settings; these do not
_ASPECTS = {
    "pixels": ("pixel_sha256",),
    "label": ("label", "class_name"),
    "verdict": ("verdict", "answers", "decided"),
    "settings": ("settings", "seed", "donor_id", "painter", "prompt"),
    "provenance": ("origin", "licence", "source_digest"),
}
_CONFIRMED = "confirmed"
_WORDED = ("licence", "origin")  # fields whose old and new values are text
_TERMS = ("labels", "scoring", "surrogates", "mining", "verification", "layout", "description", "url")


@dataclass(frozen=True)
class BenchmarkVersion:
    """One version: the parts that a comparison needs."""

    record: BenchmarkRecord
    manifest: Manifest


@dataclass(frozen=True)
class VersionChange:
    """A picture that is in both versions but differs between them."""

    picture: str
    aspects: tuple[str, ...]
    was: str = ""  # label or verdict, where those changed
    now: str = ""
    moved: tuple[tuple[str, str, str], ...] = ()  # origin and licence where they changed: field, old and new value
    lost_verdict: bool = False  # people had confirmed the picture, and that no longer stands


@dataclass(frozen=True, kw_only=True)
class BenchmarkDiff:
    """The differences between one version and the next."""

    old: str
    new: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[VersionChange, ...]
    terms: tuple[str, ...]  # fields of benchmark.json that differ
    same_rule: bool  # whether an answer to a picture in both versions is scored the same
    old_version: str
    new_version: str

    @property
    def step(self) -> Step:
        """The step that semantic versioning requires: major where accuracies or people's verdicts no longer hold."""
        if self.changes_accuracies or self.lost_verdicts:
            return "major"
        if self.added:
            return "minor"
        return "patch" if self.changed or self.terms else "none"

    @property
    def changes_accuracies(self) -> bool:
        """Whether an accuracy measured on the old version says nothing about the new one."""
        aspects = {aspect for change in self.changed for aspect in change.aspects}
        return bool(self.removed or aspects & {"pixels", "label"} or not self.same_rule)

    @property
    def lost_verdicts(self) -> int:
        """The number of pictures that people had confirmed and that are no longer confirmed."""
        return sum(change.lost_verdict for change in self.changed)

    @property
    def step_made(self) -> Step:
        """The step from the old version number to the new one."""
        pairs = zip(_numbers(self.old_version), _numbers(self.new_version), strict=True)
        steps: tuple[Step, ...] = ("major", "minor", "patch")
        return next((step for step, (old, new) in zip(steps, pairs, strict=True) if old != new), "none")

    @property
    def goes_back(self) -> bool:
        """Whether the new version's number is lower."""
        return _numbers(self.new_version) < _numbers(self.old_version)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split("-")[0].split(".")]


def read_version(folder: Path) -> BenchmarkVersion:
    """Read a version's record and manifest, which must belong together; its pictures are not read."""
    record = read_benchmark_record(folder)
    if record.computed_digest() != record.digest or not is_unchanged(folder, MANIFEST, record):
        raise UserError(f"expected a whole benchmark in '{folder}', but it was changed; `counterfoil check {folder}`")
    return BenchmarkVersion(record, read_manifest(folder))


def compare_versions(old: BenchmarkVersion, new: BenchmarkVersion) -> BenchmarkDiff:
    """Return the pictures added, removed and changed, and the other differences between the versions."""
    before, after = _rows(old.manifest), _rows(new.manifest)
    return BenchmarkDiff(
        old=f"{old.record.name} {old.record.version}",
        new=f"{new.record.name} {new.record.version}",
        added=tuple(sorted(after[key]["file"] for key in after.keys() - before.keys())),
        removed=tuple(sorted(before[key]["file"] for key in before.keys() - after.keys())),
        changed=tuple(_changes(before, after)),
        terms=tuple(term for term in _TERMS if getattr(old.record, term) != getattr(new.record, term)),
        same_rule=_same_rule(old.record, new.record),
        old_version=old.record.version,
        new_version=new.record.version,
    )


def _same_rule(old: BenchmarkRecord, new: BenchmarkRecord) -> bool:
    """Whether answers are scored the same; new classes change that only where a subset of the columns competes."""
    before, after = ({one.label: one.ids for one in record.labels.classes} for record in (old, new))
    shared = before.keys() & after.keys()
    same_classes = old.scoring == "all" or before.keys() == after.keys()
    return old.scoring == new.scoring and same_classes and all(before[label] == after[label] for label in shared)


def _rows(manifest: Manifest) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The manifest's rows by sample, edit, level and replicate; rows that share these also have their id in the key."""
    table = manifest.table
    keys = list(zip(*(table[name].tolist() for name in _KEY), strict=True))
    often = {key for key, times in Counter(keys).items() if times > 1}
    names = [name for names in _ASPECTS.values() for name in names]
    return {
        (*key, table["id"][place] if key in often else ""): {
            "file": _describe_picture(table, place),
            **{name: table[name][place] for name in names},
        }
        for place, key in enumerate(keys)
    }


def _describe_picture(table: Mapping[str, Any], place: int) -> str:
    """Describe a picture in words that do not depend on the layout."""
    sample, edit, level, replicate = (table[name][place] for name in _KEY)
    return f"{sample}: {edit} {level}{f' #{replicate}' if replicate else ''}"


def _changes(
    before: Mapping[Any, Mapping[str, Any]], after: Mapping[Any, Mapping[str, Any]]
) -> Iterator[VersionChange]:
    for key in sorted(before.keys() & after.keys(), key=str):
        old, new = before[key], after[key]
        aspects = tuple(aspect for aspect, names in _ASPECTS.items() if any(old[name] != new[name] for name in names))
        if aspects:
            field = next((name for name in ("label", "verdict") if name in aspects), None)
            was, now = (str(row[field]) if field else "" for row in (old, new))
            moved = tuple((name, str(old[name]), str(new[name])) for name in _WORDED if old[name] != new[name])
            lost = old["verdict"] == _CONFIRMED != new["verdict"]
            yield VersionChange(new["file"], aspects, was, now, moved, lost)


def describe_diff(comparison: BenchmarkDiff, most: int = 20) -> list[str]:
    """Describe the comparison; of long lists only the first `most` items."""
    lines = [f"{comparison.old} -> {comparison.new}"]
    for kind, names in (("added", comparison.added), ("removed", comparison.removed)):
        lines += [f"{kind}: {len(names)} pictures"] if names else []
        lines += _shorten([f"  {name}" for name in names], most)
    lines += [f"changed: {len(comparison.changed)} pictures"] if comparison.changed else []
    lines += _describe_changes(comparison.changed, most)
    if comparison.lost_verdicts:
        lines.append(f"lost: {comparison.lost_verdicts} pictures that people had confirmed are no longer confirmed")
    lines += [f"also changed: {', '.join(comparison.terms)}"] if comparison.terms else []
    return [*lines, _advise_step(comparison)]


def _shorten(lines: Sequence[str], most: int) -> list[str]:
    rest = len(lines) - most
    return [*lines[:most], *([f"  ... and {rest} more"] if rest > 0 else [])]


def _describe_changes(changes: Sequence[VersionChange], most: int) -> list[str]:
    """Describe changes shared by several pictures once, with their number; then the pictures with more to say."""
    times = Counter(moved for change in changes for moved in change.moved)
    shared = {moved: number for moved, number in times.most_common() if number > 1}
    together = [f"  {_describe_move(moved)}: {number} pictures" for moved, number in shared.items()]
    alone = [one for one in changes if one.aspects != ("provenance",) or not one.moved or set(one.moved) - set(shared)]
    return [*_shorten(together, most), *_shorten([f"  {_describe_change(one, shared)}" for one in alone], most)]


def _describe_change(change: VersionChange, shared: Container[tuple[str, str, str]]) -> str:
    details = [f"{change.was} -> {change.now}"] if change.was != change.now else []
    details += [_describe_move(moved) for moved in change.moved if moved not in shared]
    return f"{change.picture} ({', '.join(change.aspects)}{': ' if details else ''}{', '.join(details)})"


def _describe_move(moved: tuple[str, str, str]) -> str:
    field, was, now = moved
    return f"{field} {was or 'none'} -> {now or 'none'}"


def _advise_step(comparison: BenchmarkDiff) -> str:
    step, made = comparison.step, comparison.step_made
    if step == "none":
        return "the same pictures, labels and terms"
    why = {
        "major": "accuracies measured on the old version do not hold for the new one"
        if comparison.changes_accuracies
        else "people no longer confirm what they confirmed before",
        "minor": "pictures were added, and those before count as they did",
        "patch": "pictures and labels are the same",
    }[step]
    order = ("none", "patch", "minor", "major")
    now = f"version {comparison.old_version} -> {comparison.new_version}"
    if comparison.goes_back:
        return f"{now} goes back: a version that is higher by a {step} step is due, since {why}"
    if order.index(made) < order.index(step):
        return f"{now} is too small a step: a {step} one is due, since {why}"
    return f"{now} is a {made} step, {'as is due' if made == step else f'though a {step} one would do'}: {why}"


def render_changelog(record: BenchmarkRecord, comparison: BenchmarkDiff | None, previous: Path | None) -> str:
    """Return the changelog of a version, placed above the earlier version's where there is one."""
    counts = record.counts
    lines = [f"{counts.test} pictures of {len(record.labels.classes)} classes, {counts.reference} for reference."]
    if comparison is not None:
        lines += ["", f"Since {comparison.old_version}:", "", *_as_list(describe_diff(comparison)[1:])]
    elif previous is None:
        lines += ["", "First version."]
    earlier = (previous / CHANGELOG).read_text(encoding="utf-8").removeprefix(_TOP) if previous else ""
    return "\n".join([_TOP, f"## {record.version}", "", *lines, ""]) + earlier


def _as_list(lines: list[str]) -> list[str]:
    """Lines of the comparison as a Markdown list; subordinate lines are indented."""
    return [f"  - {line.strip()}" if line.startswith("  ") else f"- {line}" for line in lines]
