"""README.md: the dataset card, with the front matter that Hugging Face reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import yaml

from counterfoil.freeze.card_tables import cell, verification_tables
from counterfoil.freeze.contact import CONTACT, examples
from counterfoil.freeze.entries import Entry
from counterfoil.freeze.layouts import DATA
from counterfoil.freeze.record import Record

CARD = "README.md"
_HUB_LICENCES = {
    "cc0-1.0", "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0", "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-2.0",
    "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "apache-2.0", "mit",
    "bsd-3-clause", "unlicense", "odbl", "odc-by", "pddl", "gfdl", "unknown",
}  # fmt: skip
_PATTERNS = {"folder": "{split}/**", "parquet": "{split}-*.parquet", "webdataset": "{split}-*.tar"}
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_SHOWN = 20  # rows of a table of classes


def card(record: Record, entries: Sequence[Entry]) -> str:
    """The whole card."""
    sections = (
        _opening(record), _examples(entries), _contents(record), _loading(record), _verified(record),
        _biases(record, entries), _licences(record),
    )  # fmt: skip
    return "\n".join([_front_matter(record), *("\n".join(lines) for lines in sections)])


def _front_matter(record: Record) -> str:
    """What the hub shows and how `datasets` finds the splits."""
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


def _opening(record: Record) -> list[str]:
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


def _examples(entries: Sequence[Entry]) -> Iterator[str]:
    yield from ("## Examples", "", f"![Examples]({CONTACT})", "")
    for place, entry in enumerate(examples(entries), start=1):
        yield f"{place}. {cell(entry.class_name)}: {entry.variant.edit} {cell(entry.variant.level)}"
    yield ""


def _contents(record: Record) -> list[str]:
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


def _loading(record: Record) -> list[str]:
    ways = {
        "folder": [
            'ImageFolder("FOLDER/data/test/EDIT/LEVEL")  # torchvision: each condition is an image folder',
            'fiftyone.Dataset.from_dir("FOLDER", dataset_type=fiftyone.types.FiftyOneImageClassificationDataset)',
        ],
        "parquet": ['pandas.read_parquet("FOLDER/data/test-00000.parquet")'],
        "webdataset": ['webdataset.WebDataset("FOLDER/data/test-00000.tar").decode("pil").to_tuple("png", "json")'],
    }[record.layout]
    return ["## Loading", "", "```python", 'datasets.load_dataset("FOLDER")', *ways, "```", ""]


def _verified(record: Record) -> Iterator[str]:
    yield from ("## How it was verified", "")
    told = record.verification
    if told is None:
        yield from ("No people confirmed the pictures.", "")
        return
    yield (
        f"{told.annotators} people answered; {told.confirmed:,} of the pictures here are confirmed. Rule: {told.rule}."
    )
    yield ""
    yield from verification_tables(told)


def _biases(record: Record, entries: Sequence[Entry]) -> Iterator[str]:
    yield from ("## Biases", "")
    classes = Counter(_class_told(entry) for entry in entries if entry.split == "test")
    most, least = max(classes.values()), min(classes.values())
    yield f"- Classes: from {least:,} to {most:,} pictures each; an accuracy over all weighs the large ones more."
    tested = Counter(entry.variant.attribute for entry in entries if entry.split == "test")
    (attribute, number), total = tested.most_common(1)[0], sum(tested.values())
    yield f"- Attributes: {100 * number / total:.0f} % of the pictures change the {attribute}."
    if record.mining is not None:
        yield f"- Surrogates: {', '.join(record.surrogates)} chose the pictures ({record.mining.rule})."
        yield "  Their accuracy here is low by construction, and models like them are likely to be underrated too."
    yield "- Pictures are edits of photos or painted ones: artefacts of the tools may be a cause of errors."
    yield from ("", "| class | pictures |", "|---|---|")
    yield from (f"| {cell(name)} | {number:,} |" for name, number in classes.most_common(_SHOWN))
    if len(classes) > _SHOWN:
        yield f"| {len(classes) - _SHOWN} more | {sum(number for _, number in classes.most_common()[_SHOWN:]):,} |"
    yield ""


def _class_told(entry: Entry) -> str:
    """The class by its name, and by its label where that says more: two classes may share a name."""
    name, label = entry.class_name, entry.variant.label
    return name if name == label else f"{name} ({label})"


def _licences(record: Record) -> list[str]:
    rows = [f"| {cell(licence)} | {number:,} |" for licence, number in record.licences.items()]
    return [
        "## Licences", "", "Of the photos that the pictures were made from; each picture's stands in the manifest.", "",
        "| licence | pictures |", "|---|---|", *rows, "",
    ]  # fmt: skip
