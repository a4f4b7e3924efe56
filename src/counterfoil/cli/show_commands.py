"""The command `show`: pictures before and after an edit, for slides."""

from __future__ import annotations

from pathlib import Path

import click

from counterfoil.errors import UserError
from counterfoil.labels.label_space import match_label_space
from counterfoil.progress import show_stage
from counterfoil.published.catalogue import picture_reader
from counterfoil.report.gallery import describe_before
from counterfoil.report.sheets import SHEETS, SheetPair, lay_out_sheet
from counterfoil.sources.pixels import hash_pixels
from counterfoil.store.files import write_atomically
from counterfoil.study.examples import choose_pairs
from counterfoil.study.runs import Study, open_runs

_MOST = 12  # pairs on a sheet
_CHANGED = "a photo, a mask, an edit or the networks that fill holes have changed since the run"


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--attribute", help="Only pictures of this attribute.")
@click.option("--model", help="Only pictures that this model fails on.")
@click.option("--photo", help="Every picture of this photo, failed or not, by its id.")
@click.option("--limit", type=click.IntRange(1, 60), default=_MOST, show_default=True, help="Pairs on the sheet.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="File to write: .png, .svg or .pdf.")
def show(run: Path, attribute: str | None, model: str | None, photo: str | None, limit: int, out: Path) -> None:
    """Write pictures before and after an edit, with every model's answers, as one sheet at full resolution."""
    if out.suffix.lower() not in SHEETS:
        raise UserError(f"expected a file that ends in {', '.join(SHEETS)}, got '{out}'")
    study = open_runs([run])
    if study.run.scoring == "imported":
        raise UserError(f"expected a run with pictures, got '{run}': its answers were imported from a table")
    if not study.answers.conditions_of({"original"}).any():
        raise UserError(f"expected unedited photos to show pictures beside, got none in '{run}'; see skipped.csv there")
    _check_names(study, attribute, model, photo)
    load = picture_reader(study)
    pairs: list[SheetPair] = []
    changed = 0  # pairs of which a picture has other pixels now
    with show_stage("making the pictures again"):
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
    if changed and not pairs:
        raise UserError(
            f"expected pictures with the pixels that the models saw, got others for all {changed}: {_CHANGED};"
            " `counterfoil rebuild RUN VARIANT` names the reason for one picture"
        )
    if changed:
        click.echo(f"left out {changed}, which have other pixels than the models saw: {_CHANGED}", err=True)
    if not pairs:
        raise UserError(
            f"expected a picture to show, got none: either nothing failed there, or the photos of '{run}' are gone;"
            " --photo ID shows the pictures of one photo, failed or not"
        )
    labels = sorted({label for table in study.predictions.values() for label in table.labels})
    space = match_label_space(labels)
    sheet = lay_out_sheet(pairs, {label: space.name_of(label) for label in labels})
    click.echo(write_atomically(out, SHEETS[out.suffix.lower()](sheet)))


def _check_names(study: Study, attribute: str | None, model: str | None, photo: str | None) -> None:
    attributes = {row.attribute for row in study.answers.conditions} - {"original"}
    known = {"attribute": attributes, "model": set(study.predictions), "photo": set(study.answers.samples)}
    for name, wanted in (("attribute", attribute), ("model", model), ("photo", photo)):
        if wanted is not None and wanted not in known[name]:
            some = ", ".join(sorted(known[name])[:8])
            raise UserError(f"expected {name} among {some}{' ...' if len(known[name]) > 8 else ''}, got '{wanted}'")
