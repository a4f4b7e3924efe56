"""Tables of answers in the forms that others publish, with planted accuracies; made by a seeded generator."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

CATEGORIES = ("airplane", "bicycle", "cat", "dog")
FACTORS = ("pose", "background", "smaller", "texture")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def write_plain_answers(
    path: Path, accuracies: Mapping[str, Mapping[str, float]], *, photos: int = 60, replicates: int = 1
) -> Path:
    """Columns model, sample, condition, correct: exactly the given shares of photos are right."""
    rows = [
        (model, f"photo-{photo:05d}", condition, int(photo < round(share * photos)))
        for model, by_condition in accuracies.items()
        for condition, share in by_condition.items()
        for photo in range(photos)
        for _ in range(replicates)
    ]
    return write_csv(path, ("model", "sample", "condition", "correct"), rows)


def write_imagenet_x(folder: Path, models: Mapping[str, float], *, photos: int = 400) -> tuple[list[Path], Path]:
    """ImageNet-X: predictions per model (file_name, predicted_class, predicted_probability), factors as JSON lines.

    The accuracy of a model is as given on photos without the factor `smaller`, and half of it with that factor.
    """
    rng = np.random.default_rng(0)
    label = rng.integers(0, 10, photos)
    factors = {name: rng.random(photos) < 0.3 for name in FACTORS}
    names = [f"ILSVRC2012_val_{place + 1:08d}.JPEG" for place in range(photos)]
    annotations = folder / "imagenet_x_val_multi_factor.jsonl"
    with annotations.open("w", encoding="utf-8") as file:
        for place, name in enumerate(names):
            flags = {factor: int(values[place]) for factor, values in factors.items()}
            about = {"class": int(label[place]), **flags, "justification": "it stands apart", "one_word": "apart"}
            file.write(json.dumps({"file_name": name, **about}) + "\n")
    files = []
    for model, accuracy in models.items():
        right = rng.random(photos) < np.where(factors["smaller"], accuracy / 2, accuracy)
        rows = [
            (name, int(label[p] if right[p] else (label[p] + 1) % 10), round(float(rng.uniform(0.3, 1)), 4))
            for p, name in enumerate(names)
        ]
        files.append(
            write_csv(folder / f"{model}.csv", ("file_name", "predicted_class", "predicted_probability"), rows)
        )
    return files, annotations


_TRIAL = ("subj", "session", "trial", "rt", "object_response", "category", "condition", "imagename")


def write_trials(path: Path, subjects: Mapping[str, Mapping[str, float]], *, photos: int = 80) -> Path:
    """model-vs-human's trials: one row per subject and picture; the picture's name holds trial and condition."""
    rng = np.random.default_rng(1)
    rows = []
    for subject, by_condition in subjects.items():
        for condition, accuracy in by_condition.items():
            right = rng.permutation(photos) < round(accuracy * photos)
            for photo in range(photos):
                category = CATEGORIES[photo % 4]
                response = category if right[photo] else CATEGORIES[(photo + 1) % 4]
                code = "h" if subject.startswith("subject") else "dnn"
                name = f"{photo + 1:04d}_cpr_{code}_{condition}_{category}_10_n0269{photo % 4}_{photo}.png"
                rows.append((subject, 1, photo + 1, "NaN", response, category, condition, name))
    return write_csv(path, _TRIAL, rows)


def write_cue_conflicts(path: Path, shape_share: Mapping[str, float], *, photos: int = 120) -> Path:
    """Trials on cue conflicts: of the answers that name shape or texture, the given share names the shape."""
    rows = []
    pairs = [(a, b) for a in CATEGORIES for b in CATEGORIES if a != b]
    for subject, share in shape_share.items():
        for photo in range(photos):
            shape, texture = pairs[photo % len(pairs)]
            decided = photo < 0.75 * photos
            third = next(name for name in CATEGORIES if name not in (shape, texture))
            answer = (shape if photo < 0.75 * photos * share else texture) if decided else third
            name = f"{photo + 1:04d}_cue_dnn_0_{shape}_00_{shape}{photo}-{texture}{photo + 1}.png"
            rows.append((subject, 1, photo + 1, "NaN", answer, shape, 0, name))
    return write_csv(path, _TRIAL, rows)
