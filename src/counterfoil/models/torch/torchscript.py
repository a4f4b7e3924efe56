"""`torchscript:FILE`: an archive of weights and the code that uses them.

TorchScript is not Python: torch's own interpreter runs it, and it reaches tensors and little else. Little is not
nothing, it can read and write files, so an archive whose code names such an operation is refused before it is opened.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from counterfoil.errors import UserError
from counterfoil.extras import required
from counterfoil.models.description import describe, labels_of
from counterfoil.models.options import Request
from counterfoil.models.preparation import described
from counterfoil.models.torch.classifier import classifier_of
from counterfoil.models.torch.network import Scores, TorchNetwork
from counterfoil.models.torch.reaching import reaching
from counterfoil.models.weights import check_file
from counterfoil.types import Model

_REACHES_FILES = re.compile(r"\b(?:torch|aten|ops\.aten)(?:\.|::)(save|load|from_file|_load\w*)\b")


def load_torchscript(request: Request) -> Model:
    """A TorchScript archive with its labels and preprocessing in the JSON beside it."""
    path = Path(request.place)
    check_file(path, "a TorchScript archive")
    _check_code(path)
    description = describe(path, request.options.describe)
    with reaching(request.address, "save it with torch.jit.save"):
        module = required("torch", "torch").jit.load(path, map_location="cpu").eval()
    scores: Scores = "probabilities" if description.scores == "probabilities" else "logits"
    network = TorchNetwork(
        module, labels_of(description, path.parent), described(description.preprocessing), scores, path
    )  # fmt: skip
    return classifier_of(request, network)


def _check_code(path: Path) -> None:
    """Read the archive's code as text."""
    if not zipfile.is_zipfile(path):
        raise UserError(
            f"expected a TorchScript archive, got {path}, which is none; weights alone are 'safetensors:ARCH:{path}'"
        )
    with zipfile.ZipFile(path) as archive:
        code = [name for name in archive.namelist() if name.endswith(".py")]
        if not code:
            raise UserError(
                f"expected a TorchScript archive, got {path}, which holds weights alone; use 'safetensors:ARCH:{path}'"
            )
        for name in code:
            found = _REACHES_FILES.search(archive.read(name).decode("utf-8", "replace"))
            if found:
                raise UserError(
                    f"expected a TorchScript archive that only computes, got {path}: its code calls {found[0]}"
                )
