"""Pack photos with trimaps for training: 256 px WebP with background masks, the photos with most background first.

python training/pack.py IMAGES TRIMAPS PACK [--count 4908]

The trimaps are those of the Oxford-IIIT Pet dataset: 1 object, 2 background, 3 border.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

SIDE, MASK_SIDE = 256, 64
QUALITY = 90  # of WebP
BACKGROUND = 2  # in the trimaps


def background_of(trimap: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Where a cell of the coarse mask holds nothing but background."""
    share = cv2.resize((trimap == BACKGROUND).astype(np.float32), (512, 512), interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(share, (MASK_SIDE, MASK_SIDE), interpolation=cv2.INTER_AREA) > 0.999)


def packed(image: Path) -> bytes:
    """The photo squeezed to a square, compressed."""
    pixels = cv2.resize(np.asarray(cv2.imread(str(image)), np.uint8), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return cv2.imencode(".webp", pixels, [cv2.IMWRITE_WEBP_QUALITY, QUALITY])[1].tobytes()


def main() -> None:
    """Read every trimap, choose, write the pack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", type=Path)
    parser.add_argument("trimaps", type=Path)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--count", type=int, default=4908)
    asked = parser.parse_args()
    pairs = [(path, asked.images / f"{path.stem}.jpg") for path in sorted(asked.trimaps.glob("*.png"))]
    masks = {image: background_of(np.asarray(cv2.imread(str(path), 0), np.uint8)) for path, image in pairs}
    chosen = sorted(sorted(masks, key=lambda image: -masks[image].mean())[: asked.count])
    photos = [packed(image) for image in chosen]
    np.savez(
        asked.pack,
        off=np.cumsum([0, *map(len, photos)]),
        blob=np.frombuffer(b"".join(photos), np.uint8),
        mask=np.packbits(np.stack([masks[image].ravel() for image in chosen]), axis=1),
        names=np.array([image.name for image in chosen]),
    )


if __name__ == "__main__":
    main()
