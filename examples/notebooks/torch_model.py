# %% [markdown]
# # Your own torch model with your own data set
# A data set as torch has them: `classes`, and (picture, number) by index. A small network trained here on brightness.

# %%
import numpy as np
import torch
from PIL import Image

import counterfoil as cf


class Blocks(torch.utils.data.Dataset):
    """Bright and dark blocks on a grey ground."""

    classes = ["dark", "bright"]

    def __len__(self):
        return 16

    def __getitem__(self, place):
        rng = np.random.default_rng(place)
        image, label = rng.integers(90, 130, (96, 128, 3), np.uint8), place % 2
        mask = np.zeros((96, 128), np.uint8)
        top, left = rng.integers(10, 40), rng.integers(10, 60)
        mask[top : top + 40, left : left + 50] = 255
        image[mask > 0] = (
            rng.integers(190, 250, (2000, 3), np.uint8) if label else rng.integers(5, 60, (2000, 3), np.uint8)
        )
        return image, label, mask


def transform(picture):
    return torch.from_numpy(np.array(picture.resize((48, 48)))).permute(2, 0, 1) / 255 - 0.45


# %%
torch.manual_seed(0)
dataset = Blocks()
module = torch.nn.Sequential(torch.nn.AvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(432, 2))
optimiser = torch.optim.Adam(module.parameters(), 0.01)
examples = [dataset[place] for place in range(len(dataset))]
inputs = torch.stack([transform(Image.fromarray(image)) for image, _, _ in examples])
targets = torch.tensor([label for _, label, _ in examples])
for _ in range(60):
    optimiser.zero_grad()
    torch.nn.functional.cross_entropy(module(inputs), targets).backward()
    optimiser.step()

# %% [markdown]
# The labels come from the data set's `classes`; the transform is the model's.

# %%
edits = [cf.edits.ObjectBrightness(factor=0.4), "object-blur"]
result = cf.run(dataset, {"mine": module}, edits=edits, transform=transform)
result
