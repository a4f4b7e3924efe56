"""The dataset card (README.md) of a benchmark, and its contact sheet of examples."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import cv2
import numpy as np
import yaml
from numpy.typing import NDArray

from counterfoil.benchmark.benchmark_json import AnnotatorNote, BenchmarkRecord, VerificationNote
from counterfoil.benchmark.layouts import DATA
from counterfoil.benchmark.manifest import ManifestRow
from counterfoil.sources.pixels import decode_picture

_MEASURES = {
    "percent_agreement": ("same answer, %", 1), "cohen_kappa": ("Cohen's kappa", 2),
    "fleiss_kappa": ("Fleiss' kappa", 2), "krippendorff_alpha": ("Krippendorff's alpha", 2),
}  # fmt: skip
_ABSENT = "–"


def describe_verification(verification: VerificationNote) -> Iterator[str]:
    """Yield the question and its agreement, then a row per annotator."""
    yield from _agreement(verification)
    yield from _annotators(verification.records)


def escape_cell(text: str) -> str:
    """Return the text without characters that would break a Markdown table."""
    return " ".join(text.replace("|", "/").split())


def _agreement(verification: VerificationNote) -> Iterator[str]:
    rows = []
    for name, question in verification.questions.items():
        values = verification.agreement.get(name, {})
        cells = (escape_cell(question), _format_count(values.get("pictures")), *_format_measures(values))
        rows.append(f"| {' | '.join(cells)} |")
    yield "How far two annotators agree, with 95 % intervals; kappas and alpha are 0 by chance and 1 at best:"
    yield from ("", f"| question | pictures | {' | '.join(words for words, _ in _MEASURES.values())} |")
    yield from ("|---|---|---|---|---|---|", *rows, "")
    if any(_ABSENT in row for row in rows):
        yield f"{_ABSENT}: cannot be computed, since nearly all answers are the same or too few pictures have two."
        yield ""


def _format_measures(values: Mapping[str, float | None]) -> Iterator[str]:
    for name, (_, decimals) in _MEASURES.items():
        value, low, high = (_format_number(values.get(name + end), decimals) for end in ("", "_low", "_high"))
        yield value if value == _ABSENT else f"{value} [{low}, {high}]"


def _annotators(records: Sequence[AnnotatorNote]) -> Iterator[str]:
    if not records:
        return
    yield "Each annotator on hidden controls (pictures whose right answer is known) and on pictures shown twice:"
    yield from ("", "| annotator | answers | controls right | repeats answered the same | median seconds per picture |")
    yield "|---|---|---|---|---|"
    for place, row in enumerate(records, start=1):
        left_out = "" if row.counted else " (left out)"
        shares = f"{_format_share(row.controls_right, row.controls)} | {_format_share(row.repeats_same, row.repeats)}"
        yield f"| {place}{left_out} | {row.answers:,} | {shares} | {_format_seconds(row.median_seconds)} |"
    yield ""


def _format_share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none shown"


def _format_seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def _format_number(value: float | None, decimals: int) -> str:
    return _ABSENT if value is None else f"{value:.{decimals}f}"


def _format_count(value: float | None) -> str:
    return _ABSENT if value is None else f"{value:,.0f}"


CONTACT = "examples.jpg"
_MOST, _SIDE, _GAP = 6, 160, 4
_QUALITY = 88

Pixels = NDArray[np.uint8]


def choose_examples(entries: Sequence[ManifestRow]) -> list[ManifestRow]:
    """Choose a few pictures, attributes in turn, from samples that are not shown yet where possible."""
    groups: defaultdict[str, list[ManifestRow]] = defaultdict(list)
    for entry in entries:
        if entry.split == "test":
            groups[entry.variant.attribute].append(entry)
    chosen: list[ManifestRow] = []
    while len(chosen) < _MOST and any(groups.values()):
        for group in [group for group in groups.values() if group][: _MOST - len(chosen)]:
            shown = {entry.variant.sample_id for entry in chosen}
            fresh = next((entry for entry in group if entry.variant.sample_id not in shown), group[0])
            group.remove(fresh)
            chosen.append(fresh)
    return chosen


def draw_contact_sheet(entries: Sequence[ManifestRow], read: Callable[[ManifestRow], bytes]) -> bytes:
    """Return the contact sheet as JPEG."""
    chosen = choose_examples(entries)
    originals = {entry.variant.sample_id: entry for entry in entries if entry.variant.attribute == "original"}
    rows = [[_thumbnail(entry, read) for entry in chosen]]
    if any(entry.variant.sample_id in originals for entry in chosen):
        rows.insert(0, [_thumbnail(originals.get(entry.variant.sample_id), read) for entry in chosen])
    sheet = np.vstack([np.hstack(row) for row in rows])
    _, data = cv2.imencode(".jpg", cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return data.tobytes()


def _thumbnail(entry: ManifestRow | None, read: Callable[[ManifestRow], bytes]) -> Pixels:
    """Return the picture centred in a white square."""
    square = np.full((_SIDE + _GAP, _SIDE + _GAP, 3), 255, np.uint8)
    if entry is None:
        return square
    image = decode_picture(read(entry), entry.stored.file)
    scale = _SIDE / max(image.shape[:2])
    height, width = (max(1, round(scale * side)) for side in image.shape[:2])
    top, left = (_SIDE - height) // 2, (_SIDE - width) // 2
    square[top : top + height, left : left + width] = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return square


CARD = "README.md"
_HUB_LICENCES = {
    "cc0-1.0", "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-2.0",
    "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "apache-2.0", "mit",
    "bsd-3-clause", "unlicense", "odbl", "odc-by", "pddl", "gfdl", "unknown",
}  # fmt: skip
_PATTERNS = {"folder": "{split}/**", "parquet": "{split}-*.parquet", "webdataset": "{split}-*.tar"}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_SHOWN = 20  # rows of a table of classes


def render_card(record: BenchmarkRecord, entries: Sequence[ManifestRow]) -> str:
    """Return the whole card."""
    sections = (
        _opening(record), _examples(entries), _contents(record), _loading(record), _verification(record),
        _biases(record, entries), _licences(record),
    )  # fmt: skip
    return "\n".join([_front_matter(record), *("\n".join(lines) for lines in sections)])


def _front_matter(record: BenchmarkRecord) -> str:
    """Return the YAML header that the hub shows and by which `datasets` finds the splits."""
    licences = [licence.lower().replace(" ", "-") for licence in record.licences]
    licence = licences[0] if len(licences) == 1 and licences[0] in _HUB_LICENCES else "other"
    splits = ["test", *(["reference"] if record.counts.reference else [])]
    pattern = f"{DATA}/{_PATTERNS[record.layout]}"
    about = {
        "pretty_name": f"{record.name} {record.version}",
        "license": licence,
        "task_categories": ["image-classification"],
        "size_categories": [next((name for most, name in _SIZES if record.counts.pictures < most), "n>1M")],
        "tags": ["robustness", "benchmark", "counterfoil"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": pattern.format(split=split)} for split in splits],
            }
        ],
    }
    return f"---\n{yaml.safe_dump(about, sort_keys=False, allow_unicode=True)}---\n"


def _opening(record: BenchmarkRecord) -> list[str]:
    counts = record.counts
    return [
        f"# {record.name} {record.version}",
        "",
        *([record.description, ""] if record.description else []),
        f"{counts.test:,} pictures of {len(record.labels.classes):,} classes that test image classifiers,"
        f" and {counts.reference:,} unedited ones to measure drops against. Labels are of {record.labels.space}.",
        "",
        *[f"- **Note**: {note}." for note in record.notes],
        f"- Digest of pictures and labels: `{record.content_digest}`",
        "- `counterfoil check FOLDER` verifies every file; `counterfoil evaluate FOLDER --model ...` asks a model.",
        "",
    ]


def _examples(entries: Sequence[ManifestRow]) -> Iterator[str]:
    yield from ("## Examples", "", f"![Examples]({CONTACT})", "")
    for place, entry in enumerate(choose_examples(entries), start=1):
        yield f"{place}. {escape_cell(entry.class_name)}: {entry.variant.edit} {escape_cell(entry.variant.level)}"
    yield ""


def _contents(record: BenchmarkRecord) -> list[str]:
    counts = record.counts
    left_out = [f"Left out: {number:,} pictures ({reason})." for reason, number in counts.left_out.items()]
    return [
        "## Contents", "", "| attribute | pictures |", "|---|---|",
        *(f"| {attribute} | {number:,} |" for attribute, number in counts.attributes.items()), "",
        *left_out, *([""] if left_out else []),
        "`manifest.parquet` has a row per picture: hashes of file and pixels, source photo, edit with settings and"
        " seed, painter and prompt where it was painted, origin, licence, verdicts. `benchmark.json` has the label"
        " space, the scoring, the surrogates and the hash of every file.", "",
    ]  # fmt: skip


def _loading(record: BenchmarkRecord) -> list[str]:
    ways = {
        "folder": [
            'ImageFolder("FOLDER/data/test/EDIT/LEVEL")  # torchvision: each condition is an image folder',
            'fiftyone.Dataset.from_dir("FOLDER", dataset_type=fiftyone.types.FiftyOneImageClassificationDataset)',
        ],
        "parquet": ['pandas.read_parquet("FOLDER/data/test-00000.parquet")'],
        "webdataset": ['webdataset.WebDataset("FOLDER/data/test-00000.tar").decode("pil").to_tuple("png", "json")'],
    }[record.layout]
    return ["## Loading", "", "```python", 'datasets.load_dataset("FOLDER")', *ways, "```", ""]


def _verification(record: BenchmarkRecord) -> Iterator[str]:
    yield from ("## How it was verified", "")
    verification = record.verification
    if verification is None:
        yield from ("Nobody has confirmed the pictures.", "")
        return
    yield (
        f"{verification.annotators} people answered; {verification.confirmed:,} of the pictures here are confirmed."
        f" Rule: {verification.rule}."
    )
    yield ""
    yield from describe_verification(verification)


def _biases(record: BenchmarkRecord, entries: Sequence[ManifestRow]) -> Iterator[str]:
    yield from ("## Biases", "")
    classes = Counter(_name_class(entry) for entry in entries if entry.split == "test")
    most, least = max(classes.values()), min(classes.values())
    yield f"- Classes: from {least:,} to {most:,} pictures each; an accuracy over all weighs large classes more."
    tested = Counter(entry.variant.attribute for entry in entries if entry.split == "test")
    (attribute, number), total = tested.most_common(1)[0], sum(tested.values())
    yield f"- Attributes: {100 * number / total:.0f} % of the pictures change the {attribute}."
    if record.mining is not None:
        yield f"- Surrogates: {', '.join(record.surrogates)} chose the pictures ({record.mining.rule})."
        yield "  Their accuracy here is low by construction, and models like them are likely to be underrated too."
    yield "- The pictures were edited or painted: traces of the tools may cause errors."
    yield from ("", "| class | pictures |", "|---|---|")
    yield from (f"| {escape_cell(name)} | {number:,} |" for name, number in classes.most_common(_SHOWN))
    if len(classes) > _SHOWN:
        yield f"| {len(classes) - _SHOWN} more | {sum(number for _, number in classes.most_common()[_SHOWN:]):,} |"
    yield ""


def _name_class(entry: ManifestRow) -> str:
    """The class by its name, and by its label where that adds something: two classes may share a name."""
    name, label = entry.class_name, entry.variant.label
    return name if name == label else f"{name} ({label})"


def _licences(record: BenchmarkRecord) -> list[str]:
    rows = [f"| {escape_cell(licence)} | {number:,} |" for licence, number in record.licences.items()]
    return [
        "## Licences", "", "Of the photos that the pictures were made from; the manifest names each picture's.", "",
        "| licence | pictures |", "|---|---|", *rows, "",
    ]  # fmt: skip
