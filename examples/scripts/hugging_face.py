"""A data set of Hugging Face, with class names in its features."""

import datasets
from PIL import Image

import counterfoil as cf

photos = cf.open_photos("demo:", limit=4)
names = sorted({label for _, label, _ in photos})
rows = [
    {"image": Image.fromarray(image), "label": names.index(label), "mask": Image.fromarray(mask)}
    for image, label, mask in photos
]
features = {"image": datasets.Image(), "label": datasets.ClassLabel(names=names), "mask": datasets.Image()}
dataset = datasets.Dataset.from_list(rows, features=datasets.Features(features))  # yours: load_dataset(...)
result = cf.run(dataset, "embedded:efficientnet-lite0", edits=["background-plain"])
print(result)
