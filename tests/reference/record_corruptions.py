"""Record what imagecorruptions 1.1.2 makes of three photos: `python tests/reference/record_corruptions.py`.

Needs `pip install imagecorruptions==1.1.2 scikit-image scipy opencv-python-headless`. The package is older than the
NumPy, SciPy and scikit-image of today: four names that these no longer have are put back before it is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent.parent / "bench"))

from corruption_statistics import NAMES, PHOTOS, SEVERITIES, draws_of, photo, statistics  # noqa: E402
from old_corruptions import imagecorruptions  # noqa: E402


def main() -> None:
    """Write tests/data/corruptions.json."""
    np.random.seed(1)  # noqa: NPY002  the package draws from the global generator
    keys = [(name, severity, picture) for name in NAMES for severity in SEVERITIES for picture in PHOTOS]
    found = {"/".join(map(str, key)): _recorded(*key) for key in keys}
    (HERE.parent / "data" / "corruptions.json").write_text(json.dumps(found, indent=0) + "\n")


def _recorded(name: str, severity: int, picture: str) -> dict[str, list[float]]:
    corrupt: Any = imagecorruptions().corrupt
    image = photo(picture)
    measured = statistics(lambda: np.asarray(corrupt(image, severity, name)), draws_of(name))
    return {kind: [float(f"{value:.5g}") for value in row] for kind, row in measured._asdict().items()}


if __name__ == "__main__":
    main()
