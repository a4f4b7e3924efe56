"""Pictures as files: data/<split>/<edit>/<level>/<label>/<name>.png, each condition an image folder of its own.

torchvision's ImageFolder reads each condition, `datasets` each split by its metadata.jsonl, FiftyOne the whole by
labels.json.
"""

from __future__ import annotations

import hashlib
import json

from counterfoil.errors import UserError
from counterfoil.freeze.entries import Entry, Place
from counterfoil.freeze.layouts.layout import DATA, Site

METADATA, FIFTYONE = "metadata.jsonl", "labels.json"


class FolderLayout:
    """One file per picture."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._placed: dict[str, tuple[Entry, Place]] = {}  # by path, in the order of coming

    def add(self, entry: Entry, data: bytes) -> None:
        """Write one picture."""
        file = f"{DATA}/{entry.split}/{entry.exhibit.file}"
        if file in self._placed:
            raise UserError(f"expected each picture under a path of its own, got {file} twice; build it again")
        path = self._site.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self._placed[file] = entry, Place(file, "", 0, len(data), hashlib.sha256(data).hexdigest())

    def finish(self) -> list[Place]:
        """Write what the readers of image folders look for beside the pictures."""
        for split in dict.fromkeys(entry.split for entry, _ in self._placed.values()):
            start = f"{DATA}/{split}/"
            lines = [
                json.dumps({"file_name": file.removeprefix(start), **entry.shown}, ensure_ascii=False) + "\n"
                for file, (entry, _) in self._placed.items()
                if entry.split == split
            ]
            (self._site.folder / DATA / split / METADATA).write_text("".join(lines), encoding="utf-8")
        self._write_fiftyone()
        return [place for _, place in self._placed.values()]

    def _write_fiftyone(self) -> None:
        numbers = {label: number for number, label in enumerate(self._site.labels)}
        labels = {
            file.removeprefix(f"{DATA}/").removesuffix(".png"): numbers[entry.variant.label]
            for file, (entry, _) in self._placed.items()
        }
        content = {"classes": list(self._site.labels), "labels": labels}
        text = json.dumps(content, ensure_ascii=False, indent=1)
        (self._site.folder / FIFTYONE).write_text(text, encoding="utf-8")
