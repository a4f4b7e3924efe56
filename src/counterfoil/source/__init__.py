"""Pictures and masks from anywhere."""

from counterfoil.source.demo import DemoSource
from counterfoil.source.folder import FolderSource

__all__ = ["SOURCES", "DemoSource", "FolderSource"]

SOURCES = {
    "folder": "a folder of class folders, <label>/<name>.jpg|png|webp, masks <label>/<name>.png in another",
    "demo": "the photos of `counterfoil demo`, out of PyPI distributions, with masks of our own",
}
