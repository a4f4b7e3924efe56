"""Small workspaces to freeze: photos with licences, edits of them, results of mining and verification."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from counterfoil.benchmark.release import FreezeConfig, freeze_workspace
from counterfoil.benchmark.writer import FreezeResult, Title
from counterfoil.builder import build_pictures
from counterfoil.run_config import RunConfig
from counterfoil.sources.source_loaders import open_source
from counterfoil.store.parquet import read_table, write_table
from counterfoil.store.prediction_tables import CENTRE_COLUMNS, VARIANT_COLUMNS
from counterfoil.store.run_checksums import forget_checksums
from counterfoil.store.workspace import Workspace
from counterfoil.types import Decision, MiningResult, VerificationResult
from planted import write_photos

RECIPE = """
about: a few edits
working_size: 96
judge_fills: false
edits:
  - edit: control
  - edit: background-swap
  - {edit: size, levels: {rate: [0.1, 0.05]}}
"""
AGREEMENT = {
    "percent_agreement": 90.0, "percent_agreement_low": 80.0, "percent_agreement_high": 95.0,
    "cohen_kappa": 0.5, "cohen_kappa_low": 0.25, "cohen_kappa_high": 0.75, "fleiss_kappa": float("nan"),
    "krippendorff_alpha": 0.5, "krippendorff_alpha_low": 0.25, "krippendorff_alpha_high": 0.75, "pictures": 8.0,
}  # fmt: skip
SURROGATES = {"python:planted:fails_on_small_objects": "a" * 64, "python:planted:answers_by_background": "b" * 64}


def write_workspace(folder: Path, photos: int = 4, licences: Mapping[str, str] | None = None) -> Workspace:
    """A workspace built from photos beside it: six pictures of each photo, less those that fail."""
    images, _ = write_photos(folder, photos)
    if licences is not None:
        write_licences(images, licences)
    (folder / "recipe.yaml").write_text(RECIPE)
    return build_workspace(folder)


def build_workspace(folder: Path) -> Workspace:
    """The workspace of the photos and the recipe in a folder; a rebuild records the current state of the photos."""
    job = RunConfig(
        source=open_source(folder / "images", folder / "masks"), models=(), recipe=str(folder / "recipe.yaml")
    )
    build_pictures(job, folder / "workspace")
    return Workspace(folder / "workspace")


def without_provenance(workspace: Workspace) -> Workspace:
    """The workspace as an older version wrote it: its manifest has no licences, its folder no checksums."""
    path = workspace.folder / "variants.parquet"
    table, older = read_table(path), {**VARIANT_COLUMNS, **CENTRE_COLUMNS}
    write_table(path, older, {name: table[name] for name in older})
    forget_checksums(workspace.folder)
    return Workspace(workspace.folder)


def write_licences(images: Path, licences: Mapping[str, str]) -> None:
    with (images / "licences.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "licence", "origin"])
        rows.writerows([name, licence, f"photo book, {name}"] for name, licence in licences.items())


def ids_of(workspace: Workspace, edit: str) -> list[str]:
    return [one.variant.id for one in workspace.pictures if one.variant.edit == edit]


def keep_mined(workspace: Workspace, ids: Iterable[str], digest: str | None = None) -> None:
    rule = "wrong for at least 2 of 2 surrogates"
    workspace.keep_mined(MiningResult(tuple(ids), rule, SURROGATES, digest or workspace.digest))


def keep_verdicts(
    workspace: Workspace, kept: Mapping[str, bool], digest: str | None = None, undecided: Iterable[str] = (),
    **further: Any,
) -> None:  # fmt: skip
    """Verdicts of three annotators: unanimous except on the undecided pictures."""
    decisions = [
        Decision(name, yes, {"object": {"yes" if yes else "no": 3}}, {"object": "yes" if yes else "no"})
        for name, yes in kept.items()
    ]
    answers = {"yes": 1, "no": 1, "unsure": 1}
    decisions += [Decision(name, False, {"object": answers}, {"object": "undecided"}) for name in undecided]
    questions, agreement = {"object": "Is the object recognisable?"}, {"object": AGREEMENT}
    told = VerificationResult(
        rule="majority",
        questions=questions,
        annotators=3,
        agreement=agreement,
        decisions=tuple(decisions),
        workspace_digest=digest or workspace.digest,
        **further,
    )
    workspace.keep_verified(told)


def frozen(workspace: Workspace, out: Path, version: str = "1.0.0", **options: Any) -> FreezeResult:
    """The workspace as a benchmark, by the function behind `counterfoil freeze`."""
    return freeze_workspace(workspace, FreezeConfig(title=Title("planted", version), **options), out)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
