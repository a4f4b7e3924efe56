"""Masks that the segmenter finds against masks by hand: overlap, what the test refuses, and what it lets pass.

    python bench/masks.py FOLDER MASKS [--segmenter u2net] [--limit 120] [--first 0]

MASKS are masks or trimaps of the photos in FOLDER (class folders, same stems). Overlap is intersection over union; the
undecided band of a trimap counts neither way. A mask is bad below an overlap of 0.8.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from counterfoil.mask_quality import make_mask_judge
from counterfoil.object_mask import UNKNOWN, as_mask, hard_object, mask_overlap
from counterfoil.segmentation import DEFAULT_SEGMENTER, SEGMENTERS, make_segmenter
from counterfoil.sources.pixels import read_mask, read_photo
from counterfoil.types import Sample

BAD = 0.8


def main() -> None:
    """Print the figures of one segmenter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("masks", type=Path)
    parser.add_argument("--segmenter", choices=list(SEGMENTERS), default=DEFAULT_SEGMENTER)
    parser.add_argument("--limit", type=int, default=120, help="photos, evenly spread over the folder")
    parser.add_argument("--first", type=int, default=0, help="start at this photo of each stretch")
    parser.add_argument("--rows", type=Path, help="write one line of JSON per photo here")
    asked = parser.parse_args()
    photos = [path for path in sorted(asked.folder.glob("*/*")) if _mask_of(path, asked.masks).is_file()]
    step = max(1, len(photos) // asked.limit)
    chosen = photos[asked.first :: step][: asked.limit]
    sample = [Sample(id="photo", label="", image="", mask=None, digest="")]
    segmenter, judge = make_segmenter(sample, asked.segmenter), make_mask_judge(sample, asked.segmenter)
    rows = []
    for path in chosen:
        image, truth = read_photo(path), read_mask(_mask_of(path, asked.masks))
        found = segmenter(image)
        decided = (truth != UNKNOWN) if as_mask(truth).origin == "trimap" else np.ones(truth.shape, bool)
        overlap = mask_overlap(hard_object(found.mask.values) & decided, hard_object(truth) & decided)
        verdict = judge.judge_found(f"{path.parent.name}/{path.name}", image, found)
        rows.append({**asdict(verdict), "overlap": overlap})
    if asked.rows:
        asked.rows.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    overlaps = np.array([row["overlap"] for row in rows])
    accepted = np.array([row["verdict"] == "accepted" for row in rows])
    good = overlaps >= BAD
    print(f"{asked.segmenter}: {len(rows)} photos, every {step}th from number {asked.first}")
    print(f"overlap with the masks by hand: mean {overlaps.mean():.3f}, below {BAD}: {1 - good.mean():.1%} of all")
    print(f"accepted: {accepted.mean():.1%}; their mean {overlaps[accepted].mean():.3f}")
    print(f"bad among accepted: {1 - good[accepted].mean():.1%}; good ones refused: {1 - accepted[good].mean():.1%}")


def _mask_of(photo: Path, masks: Path) -> Path:
    return masks / photo.parent.name / f"{photo.stem}.png"


if __name__ == "__main__":
    main()
