"""Your own torch module with its transform and labels."""

import numpy as np
import torch

import counterfoil as cf

photos = cf.open_photos("demo:", limit=4)
classes = sorted({label for _, label, _ in photos})
pool = [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten()]
module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 7, 4), torch.nn.ReLU(), *pool, torch.nn.Linear(8, len(classes)))


def transform(picture):  # or torchvision's transforms; the module above is yours, trained
    return torch.from_numpy(np.array(picture.resize((96, 96)))).permute(2, 0, 1) / 255 - 0.5


result = cf.run(photos, {"mine": module}, edits=["size"], labels=classes, transform=transform)
print(result)
