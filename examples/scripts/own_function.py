"""Your own function as the model: pictures in, scores or labels out."""

import numpy as np

import counterfoil as cf

CLASSES = ["n02110341", "n02422699"]  # two classes of the demo photos: dalmatian and impala


def spots(images):
    """Dalmatian where many pixels are nearly white, impala otherwise."""
    white = np.array([(image.min(axis=2) > 170).mean() for image in images])
    return np.stack([white, 1 - white], axis=1)


photos = [photo for photo in cf.open_photos("demo:") if photo[1] in CLASSES]
result = cf.run(photos, {"spots": spots}, edits=["background-plain", "object-grayscale"], labels=CLASSES)
for drop in result.drops:
    print(f"{drop.edit}: {drop.drop:.1f} points, n = {drop.n}")
