"""The workspace: a folder of pictures with its manifest, and the results of mining and verification."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from counterfoil.errors import Unusable, UserError, expect_path
from counterfoil.store.files import make_folder_name, write_atomically
from counterfoil.store.folder_mirror import fetch_file
from counterfoil.store.parquet import read_table
from counterfoil.store.prediction_tables import read_provenance, read_run_record, read_variants
from counterfoil.store.run_checksums import refuse_changed, renew_checksums
from counterfoil.types import AnnotatorRecord, Decision, MiningResult, StoredVariant, Variant, VerificationResult


def locate_picture(variant: Variant) -> PurePosixPath:
    """The path of a variant: edit/level/label/name.png, so that each condition is an image folder."""
    name = PurePosixPath(str(variant.sample_id)).stem[:80]
    tail = f"-{variant.replicate}" if variant.replicate else ""
    level = re.sub(r"[^\w.+-]+", "_", variant.level)
    return PurePosixPath(variant.edit, level, make_folder_name(variant.label), f"{name}-{variant.id[:8]}{tail}.png")


@dataclass(frozen=True, repr=False)
class Workspace:
    """The folder that `build` or `paint` filled; `mine` and `verify` write their results into it."""

    folder: Path
    may_have_changed: bool = False  # True to get answers out of a workspace whose files are not as they were written

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", expect_path(self.folder, "the folder of a workspace"))
        if not (self.folder / "variants.parquet").is_file() or not (self.folder / "pictures").is_dir():
            raise UserError(
                f"expected a workspace with pictures, got '{self.folder}';"
                " `counterfoil build --out FOLDER` or `counterfoil paint --out FOLDER` makes one"
            )
        if not self.may_have_changed:
            refuse_changed(self.folder)

    def __repr__(self) -> str:
        return f"Workspace({str(self.folder)!r})"

    @cached_property
    def record(self) -> dict[str, Any]:
        """The record of the command that filled the workspace."""
        return read_run_record(self.folder)

    @cached_property
    def pictures(self) -> tuple[StoredVariant, ...]:
        """Every picture in the order of the manifest."""
        table = read_table(self.folder / "variants.parquet")
        known = (table["sha256"], table["sample_digest"], table["object_share"], read_provenance(table))
        return tuple(
            StoredVariant(
                variant, f"pictures/{locate_picture(variant)}", str(sha256), str(sample), float(share), photos
            )
            for variant, sha256, sample, share, photos in zip(read_variants(table), *known, strict=True)
        )

    @cached_property
    def digest(self) -> str:
        """Hash over every picture's id and pixels: it changes when the workspace does."""
        rows = sorted((stored.variant.id, stored.sha256) for stored in self.pictures)
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    def read(self, stored: StoredVariant) -> NDArray[np.uint8]:
        """The pixels of one picture, (height, width, 3), RGB; raises `Unusable` where that fails."""
        fetch_file(self.folder / stored.file)
        try:
            encoded = np.fromfile(self.folder / stored.file, np.uint8)
        except OSError as error:
            raise Unusable(f"{stored.file} cannot be read: {error.strerror}") from error
        image = cv2.imdecode(encoded, cv2.IMREAD_COLOR) if encoded.size else None
        if image is None:
            raise Unusable(f"{stored.file} is no picture")
        return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), np.uint8)

    def keep_mined(self, mined: MiningResult) -> Path:
        """Write the result of mining."""
        path = write_atomically(self.folder / "mined.json", json.dumps(asdict(mined), indent=1))
        renew_checksums(self.folder)
        return path

    @property
    def mined(self) -> MiningResult | None:
        """The result of mining; None where nothing was mined yet."""
        content = _read_json(self.folder / "mined.json")
        return None if content is None else _parse(_parse_mined, content, self.folder / "mined.json")

    def keep_verified(self, verified: VerificationResult) -> Path:
        """Write the result of verification; an undefined measure is null."""
        content = asdict(verified)
        content["agreement"] = {
            question: {measure: None if math.isnan(value) else value for measure, value in measures.items()}
            for question, measures in verified.agreement.items()
        }
        path = write_atomically(self.folder / "verified.json", json.dumps(content, indent=1, allow_nan=False))
        renew_checksums(self.folder)
        return path

    @property
    def verified(self) -> VerificationResult | None:
        """The result of verification; None where there is none yet."""
        content = _read_json(self.folder / "verified.json")
        return None if content is None else _parse(_parse_verified, content, self.folder / "verified.json")

    def check_unchanged(self, digest: str, since: str) -> None:
        """Raises `UserError` where a result was made from other pictures than those here now."""
        if digest != self.digest:
            raise UserError(
                f"expected the workspace as it was when {since}, but its pictures have changed since;"
                f" build it again into another folder, or repeat that step"
            )

    def chosen(self, ids: Sequence[str]) -> tuple[StoredVariant, ...]:
        """The pictures with these ids, in the order of the manifest."""
        wanted = set(ids)
        return tuple(stored for stored in self.pictures if stored.variant.id in wanted)


_T = TypeVar("_T")


def _parse(read: Callable[[dict[str, Any]], _T], content: dict[str, Any], path: Path) -> _T:
    try:
        return read(content)
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"expected {path} as counterfoil writes it, which it is not: {error}; make it again") from error


def _parse_mined(content: dict[str, Any]) -> MiningResult:
    return MiningResult(**{**content, "kept": tuple(content["kept"])})


def _parse_verified(content: dict[str, Any]) -> VerificationResult:
    agreement = {
        question: {measure: math.nan if value is None else value for measure, value in measures.items()}
        for question, measures in content["agreement"].items()
    }
    decisions = tuple(Decision(**row) for row in content["decisions"])
    records = tuple(AnnotatorRecord(**row) for row in content.get("records", ()))
    doubts = tuple(content.get("doubts", ()))
    fields = {**content, "agreement": agreement, "decisions": decisions, "records": records, "doubts": doubts}
    return VerificationResult(**fields)


def _read_json(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"expected JSON in {path}, which is damaged: {error}; make it again") from error
    return content
