"""A picture as a `data:` URL, small enough for any endpoint."""

from __future__ import annotations

import base64
import io
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def data_url(image: NDArray[np.uint8], form: Literal["jpeg", "png"], longest_side: int) -> str:
    """The picture, shrunk where its longer side exceeds the bound: raw pixels bound the bytes of either form."""
    picture = Image.fromarray(image)
    scale = longest_side / max(picture.size)
    if scale < 1:
        size = (max(1, round(picture.width * scale)), max(1, round(picture.height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    held = io.BytesIO()
    if form == "jpeg":
        picture.save(held, "JPEG", quality=95, subsampling=0)  # full colour: edits of colour must arrive
    else:
        picture.save(held, "PNG")
    return f"data:image/{form};base64,{base64.b64encode(held.getvalue()).decode('ascii')}"
