"""The licence rule: which licence a picture carries, and which licences allow edited pictures to be redistributed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from counterfoil.edits.registry import EDITS
from counterfoil.errors import UserError
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.workspace import Workspace
from counterfoil.types import Provenance, Sample, StoredVariant

UNKNOWN = "unknown"
JOINED = " + "  # between the licences of a photo and of the photo that its background is from
PATH_SETTINGS = {name for edit in EDITS.values() for name in edit.places}  # settings of edits that hold a path
_FREE = re.compile(
    r"(cc-?0|cc-zero|cc-by(-nc)?(-sa)?|cc-pdm|cc-pddc|pdm|public-domain(-mark|-dedication)?|pddl|odc-by|odbl|gfdl"
    r"|apache|mit|0?bsd|unlicense|wtfpl|cdla-permissive|cdla-sharing|artistic|copyleft|free-art-licence|lal)"
    r"(-[0-9]+(-[0-9]+)*)?(-clause)?(-license|-licence)?(-(deed|unported|international|generic|or-later|only))?"
)
_CREATIVE_COMMONS = re.compile(r"creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)")
_SPELLINGS = {
    "zero": "cc0",
    "mark": "pdm",
    "attribution-sharealike": "cc-by-sa",
    "attribution-noncommercial": "cc-by-nc",
    "attribution-noncommercial-sharealike": "cc-by-nc-sa",
    "attribution": "cc-by",
    "creative-commons-attribution": "cc-by",
    "us-government-work": "public-domain",
    "no-known-copyright-restrictions": "public-domain",
}


def is_redistributable(licences: Iterable[str]) -> bool:
    """Whether every one of these licences is known to allow redistribution of edited pictures.

    A licence that allows no derivatives (CC BY-ND) does not: every picture here was processed by the tool. An unknown
    name counts as not allowed.
    """
    names = list(licences)
    return bool(names) and all(_FREE.fullmatch(_normalise(name)) is not None for name in names)


def _normalise(licence: str) -> str:
    """Return one spelling for "CC BY-SA 4.0", "cc-by-sa-4.0" and the address of its deed."""
    text = licence.strip().lower()
    if address := _CREATIVE_COMMONS.search(text):
        name = address.group(1)
        return _SPELLINGS.get(name, f"cc-{name}")
    text = re.sub(r"[^a-z0-9]+", "-", text).strip("-")
    return _SPELLINGS.get(text, text)


@dataclass(frozen=True)
class PhotoLicences:
    """Origin and licence of a workspace's photos: from its manifest, or from their source in older workspaces."""

    workspace: Workspace
    default: str  # the licence of photos whose source names none

    def describe(self, stored: StoredVariant) -> Provenance:
        """Origin and licence of a picture: of its photo and of the photo that its background is from."""
        photos = stored.photos or self._from_source(stored)
        origins = [photo.origin for photo in photos if photo.origin]
        licences = [photo.licence or self.default or UNKNOWN for photo in photos]
        if has_path(json.loads(stored.variant.settings or "{}")):
            licences.append(UNKNOWN)  # a background from a folder, whose licence is not known
        return Provenance(JOINED.join(dict.fromkeys(origins)), JOINED.join(dict.fromkeys(licences)))

    def _from_source(self, stored: StoredVariant) -> tuple[Provenance, ...]:
        variant = stored.variant
        photo = self._samples.get(variant.sample_id or "")
        if photo is not None and photo.digest != stored.sample_digest:
            photo = None  # a different photo under the same name
        samples = [photo, *([self._samples.get(variant.donor_id)] if variant.donor_id else [])]
        return tuple(sample.provenance if sample is not None else Provenance() for sample in samples)

    @cached_property
    def _samples(self) -> dict[str, Sample]:
        """The samples of the source that the workspace was built from; where it is gone, licences are unknown."""
        record = self.workspace.record
        images = str(record.get("images") or "")
        try:
            samples = open_source(images, record.get("masks")).samples()[0] if images else ()
        except UserError:
            if Path(images).is_dir():
                raise
            samples = ()
        return {sample.id: sample for sample in samples}


def has_path(settings: Any) -> bool:
    """Whether an edit, or one nested in it, read a file or folder of the user."""
    if isinstance(settings, list):
        return any(has_path(item) for item in settings)
    if not isinstance(settings, dict):
        return False
    return any((name in PATH_SETTINGS and value is not None) or has_path(value) for name, value in settings.items())
