"""Pictures as arrays: walk through their variants, and look at each."""

import numpy as np

import counterfoil as cf

image, mask = np.full((120, 160, 3), 200, np.uint8), np.zeros((120, 160), np.uint8)
image[40:90, 50:110], mask[40:90, 50:110] = (30, 90, 200), 255
image[:, ::8] //= 2  # stripes

stream = cf.variants([(image, "box", mask)], edits=["size", cf.edits.ObjectHue(), "object-blur"])
for variant, picture in stream:
    print(f"{variant.edit:<12} {variant.level:<8} object covers {(picture.alpha > 127).mean():.0%}")
for row in stream.skipped:
    print(f"{row.edit:<12} left out: {row.reason}")
