"""Pictures of a run before and after an edit, with every model's answers, as one sheet: `show`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from counterfoil.errors import UserError, expect_kind
from counterfoil.labels.label_space import match_label_space
from counterfoil.progress import show_stage
from counterfoil.published.catalogue import picture_reader
from counterfoil.report.gallery import describe_before
from counterfoil.report.sheets import SHEETS, Sheet, SheetPair, lay_out_sheet
from counterfoil.run_config import check_counts
from counterfoil.run_result import Result
from counterfoil.run_verdicts import folder_of
from counterfoil.sources.pixels import hash_pixels
from counterfoil.store.files import write_atomically
from counterfoil.study.examples import choose_pairs
from counterfoil.study.runs import Study, open_runs
from counterfoil.study.thumbnails import PictureLoader

MOST_PAIRS = 12  # on a sheet
_CHANGED = "a photo, a mask, an edit or the networks that fill holes have changed since the run"


@dataclass(frozen=True, repr=False)
class PictureSheet:
    """Pictures before and after an edit; a notebook shows it, and `save` writes it."""

    sheet: Sheet
    changed: int = 0  # pairs that were left out, since their pixels are no longer those that the models saw

    @property
    def note(self) -> str:
        """What was left out; empty where nothing was."""
        if not self.changed:
            return ""
        return f"left out {self.changed}, which have other pixels than the models saw: {_CHANGED}"

    def save(self, out: str | Path) -> Path:
        """Write the sheet as .png, .svg or .pdf; raises `UserError` for other files."""
        path = Path(out)
        check_sheet_name(path)
        return write_atomically(path, SHEETS[path.suffix.lower()](self.sheet))

    def __repr__(self) -> str:
        return f"PictureSheet({len(self.sheet.pictures)} pictures); save('sheet.png') writes it"

    def _repr_html_(self) -> str:
        """The sheet as SVG, as a notebook shows it."""
        return SHEETS[".svg"](self.sheet).decode()


def check_sheet_name(out: Path) -> None:
    """Raises `UserError` for a file that is no kind of sheet."""
    if out.suffix.lower() not in SHEETS:
        raise UserError(f"expected a file that ends in {', '.join(SHEETS)}, got '{out}'")


def show(
    run: Result | str | Path,
    *,
    attribute: str | None = None,
    model: str | None = None,
    photo: str | None = None,
    limit: int = MOST_PAIRS,
) -> PictureSheet:
    """Pictures before and after an edit, with every model's answers, as one sheet.

    Args:
        run: A result, or the folder of a run.
        attribute: Only pictures of this attribute.
        model: Only pictures that this model fails on.
        photo: Every picture of this photo, failed or not, by its id.
        limit: Pairs on the sheet.

    Returns:
        The sheet; a notebook shows it, and `save(file)` writes it as .png, .svg or .pdf.

    Raises:
        UserError: There is no such picture, or the photos are gone.

    Examples:
        >>> import numpy as np
        >>> image, mask = np.full((64, 64, 3), 90, np.uint8), np.zeros((64, 64), np.uint8)
        >>> image[20:40, 20:44], mask[20:40, 20:44] = (200, 40, 40), 255
        >>> from counterfoil import run
        >>> reddest = lambda images: ["red" if each[..., 0].max() > 150 else "grey" for each in images]
        >>> result = run([(image, "red", mask)], {"reddest": reddest}, edits=["object-grayscale"])
        >>> len(show(result, attribute="colour").sheet.pictures)
        2
    """
    for name, wanted in (("attribute", attribute), ("model", model), ("photo", photo)):
        expect_kind(wanted, (str, type(None)), f"{name}= as a text")
    check_counts(limit=limit)
    folder = folder_of(run)
    study = run.study if isinstance(run, Result) else open_runs([folder])
    if study.run.scoring == "imported":
        raise UserError(f"expected a run with pictures, got '{folder}': its answers were imported from a table")
    if not study.answers.conditions_of({"original"}).any():
        raise UserError(
            f"expected unedited photos to show pictures beside, got none in '{folder}'; see skipped.csv there"
        )
    _check_names(study, attribute, model, photo)
    load = run.plan.picture if isinstance(run, Result) else picture_reader(study)
    with show_stage("making the pictures again"):
        pairs, changed = _load_pairs(study, load, (attribute, model, photo), limit)
    if changed and not pairs:
        raise UserError(
            f"expected pictures with the pixels that the models saw, got others for all {changed}: {_CHANGED};"
            " `counterfoil pictures rebuild RUN VARIANT` names the reason for one picture"
        )
    if not pairs:
        raise UserError(
            f"expected a picture to show, got none: either nothing failed there, or the photos of '{folder}' are gone;"
            " --photo ID shows the pictures of one photo, failed or not"
        )
    labels = sorted({label for table in study.predictions.values() for label in table.labels})
    space = match_label_space(labels)
    return PictureSheet(lay_out_sheet(pairs, {label: space.name_of(label) for label in labels}), changed)


def _load_pairs(
    study: Study, load: PictureLoader, wanted: tuple[str | None, str | None, str | None], limit: int
) -> tuple[list[SheetPair], int]:
    """The pairs whose pictures have the pixels that the models saw, and how many have others now."""
    attribute, model, photo = wanted
    pairs: list[SheetPair] = []
    changed = 0
    for pair in choose_pairs(study, attribute=attribute, model=model, photo=photo):
        before, after = load(pair.before[0]), load(pair.after[0])
        if before is None or after is None:
            continue
        if [hash_pixels(before.image), hash_pixels(after.image)] != [pair.before[1], pair.after[1]]:
            changed += 1
            continue
        pairs.append(SheetPair.of(pair.example, before.image, after.image, describe_before(pair.example)))
        if len(pairs) == limit:
            break
    return pairs, changed


def _check_names(study: Study, attribute: str | None, model: str | None, photo: str | None) -> None:
    attributes = {row.attribute for row in study.answers.conditions} - {"original"}
    known = {"attribute": attributes, "model": set(study.predictions), "photo": set(study.answers.samples)}
    for name, wanted in (("attribute", attribute), ("model", model), ("photo", photo)):
        if wanted is not None and wanted not in known[name]:
            some = ", ".join(sorted(known[name])[:8])
            raise UserError(f"expected {name} among {some}{' ...' if len(known[name]) > 8 else ''}, got '{wanted}'")
