"""Your own edit: a function of the image, the mask and a random generator."""

import counterfoil as cf


@cf.edit(attribute="background")
def snow(image, mask, rng, amount: float = 0.2):
    """White flakes behind the object."""
    image[(rng.random(mask.shape) < amount) & (mask == 0)] = 255
    return image


edits = [snow, snow(amount=0.5), cf.edits.BackgroundBlur()]
result = cf.run("demo:", "embedded:efficientnet-lite0", edits=edits, limit=4)
print(result.photos()[["photo", "edit", "level", "original_answer", "answer"]].to_string(index=False))
