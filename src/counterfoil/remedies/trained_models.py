"""The trained networks of a repair as models: which of them is asked about which part, and the candidate they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from counterfoil.remedies.candidates import RemedyCandidate, write_candidate
from counterfoil.remedies.mined_pictures import MinedPictures
from counterfoil.remedies.photo_parts import FOLDS
from counterfoil.remedies.picture_answers import AskedModels, Asker, PhotoAnswers
from counterfoil.remedies.repair_config import TRAIN, RepairPlan
from counterfoil.remedies.trained_folds import FoldTrainer, TrainedFolds
from counterfoil.types import Model

_CHOOSING = f"{TRAIN}, choosing"  # the answers of the network that was trained on the fitting part alone


@dataclass(frozen=True, kw_only=True)
class TrainedModels:
    """The networks of each fold, written and loaded."""

    fits: TrainedFolds
    folds: tuple[Model, ...]  # by the part that they judge
    final: Model

    def add_to(self, asked: AskedModels, part: int) -> AskedModels:
        """The models that are shown the pictures of a part: the one that judges it, and the one that chooses on it."""
        fold = next(place for place, fold in enumerate(FOLDS) if fold.choosing == part)
        identity, choosing = self.fits.choosing[fold]
        judging = self.folds[part]
        models: dict[str, Asker] = {**asked.models, TRAIN: judging, _CHOOSING: choosing}
        identities = {**asked.identities, TRAIN: judging.identity, _CHOOSING: identity}
        for name, folds in self.fits.left_out.items():
            identities[_name_left_out(name)], models[_name_left_out(name)] = folds[part]
        return replace(asked, models=models, identities=identities)

    def candidate(self, judged: Sequence[Sequence[PhotoAnswers]]) -> RemedyCandidate:
        """The remedy, with what its networks answered."""
        return RemedyCandidate(
            name=TRAIN, final=self.fits.final, model=self.final, folds=self.folds, settings=self.fits.settings,
            choosing=tuple([_as_judged(photo, _CHOOSING) for photo in judged[fold.choosing]] for fold in FOLDS),
            fitted_edits=self.fits.fitted_edits,
        )  # fmt: skip

    def left_out(self, judged: Sequence[Sequence[PhotoAnswers]]) -> dict[str, list[list[PhotoAnswers]]]:
        """By attribute the judged photos, answered by networks that were trained without it."""
        return {
            name: [[_as_judged(photo, _name_left_out(name)) for photo in part] for part in judged]
            for name in self.fits.left_out
        }


def _name_left_out(attribute: str) -> str:
    return f"{TRAIN} without {attribute}"


def _as_judged(photo: PhotoAnswers, name: str) -> PhotoAnswers:
    """The photo with the answers of another network in the place of the one that judges."""
    return replace(
        photo, answers={**photo.answers, TRAIN: photo.answers[name]}, among={**photo.among, TRAIN: photo.among[name]}
    )


def train_models(plan: RepairPlan, folder: Path, mined: MinedPictures) -> TrainedModels:
    """Train on the parts of a repair, and write the networks beside and below its work files."""
    fits = FoldTrainer(plan, folder, mined).train()
    return TrainedModels(
        fits=fits, final=write_candidate(folder / "candidates", TRAIN, fits.final),
        folds=tuple(
            write_candidate(folder.parent / "folds", f"{TRAIN}-{part + 1}", network)
            for part, network in enumerate(fits.folds)
        ),
    )  # fmt: skip
