"""Small run folders written directly: which model is right on which photo and edit is given, not computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from counterfoil.store.prediction_tables import RenderedVariant, ResultTables
from counterfoil.types import Attribute, Prediction, PredictionOutcome, Sample, Variant

CONDITIONS: tuple[tuple[Attribute, str, str], ...] = (
    ("original", "original", "none"),
    ("control", "control", "none"),
    ("background", "background-swap", "other"),
    ("size", "size", "0.2"),
    ("size", "size", "0.05"),
)
SHARES = {"0.2": 20.0, "0.05": 5.0}
LABELS = ("n01440764", "n01443537")  # tench, goldfish
Right = Callable[[int, str, str], bool]  # photo, edit, level


def breaks_on(wrong: Mapping[str, int]) -> Right:
    """Right except on the first photos, as many as given, of an edit or an edit:level."""

    def right(photo: int, edit: str, level: str) -> bool:
        return photo >= wrong.get(f"{edit}:{level}", wrong.get(edit, 0))

    return right


def write_run(
    folder: Path,
    models: Mapping[str, Right],
    *,
    photos: int = 40,
    errors: int = 0,
    label: Callable[[int], str] = lambda photo: LABELS[photo % 2],
    **record: object,
) -> Path:
    """A finished run's folder; the first `errors` photos of the size edit at 0.05 end in an error."""
    folder.mkdir(parents=True, exist_ok=True)
    with ResultTables(folder, list(models), 384) as tables:
        for photo in range(photos):
            _write_photo(tables, models, photo, label(photo), errors)
    about = {
        "images": "photos", "masks": "masks", "recipe": "attributes", "recipe_digest": "c0ffee00" * 8, "seed": 0,
        "models": list(models), "model_digests": dict.fromkeys(models, "feed" * 16),
        "preprocessing": dict.fromkeys(models), **record,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def _write_photo(tables: ResultTables, models: Mapping[str, Right], photo: int, label: str, errors: int) -> None:
    name = f"fish/{photo:03d}.jpg"
    sample = Sample(id=name, label=label, image=name, mask=f"fish/{photo:03d}.png", digest=f"{photo:064x}")
    for place, (attribute, edit, level) in enumerate(CONDITIONS):
        variant = Variant(
            id=f"{photo:08x}{place:02x}",
            sample_id=name,
            label=label,
            attribute=attribute,
            edit=edit,
            level=level,
            settings="{}",
            seed=photo,
            donor_id=None,
        )
        made = RenderedVariant(variant, f"{photo:032x}{place:032x}", SHARES.get(level, 30.0))
        tables.add_variant(sample, made)
        failed = level == "0.05" and photo < errors
        for model, right in models.items():
            tables.add_prediction(model, made, _answer(variant, right(photo, edit, level), failed))


def _answer(variant: Variant, right: bool, failed: bool) -> Prediction:
    wrong = next(label for label in LABELS if label != variant.label)
    ranked = (variant.label, wrong) if right else (wrong, variant.label)
    outcome: PredictionOutcome = "error" if failed else "scored"
    return Prediction(variant.id, ranked, (0.8, 0.2), 0.8 if right else 0.2, outcome)
