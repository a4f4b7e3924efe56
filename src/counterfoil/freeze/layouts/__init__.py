"""How pictures lie in a benchmark: as files, in Parquet or in tar shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from counterfoil.freeze.layouts.folder import FolderLayout
from counterfoil.freeze.layouts.layout import DATA, Layout, Site
from counterfoil.freeze.layouts.parquet_shards import parquet_layout
from counterfoil.freeze.layouts.tar_shards import tar_layout

LayoutName: TypeAlias = Literal["folder", "parquet", "webdataset"]
LAYOUTS: dict[LayoutName, Callable[[Site], Layout]] = {
    "folder": FolderLayout,
    "parquet": parquet_layout,
    "webdataset": tar_layout,
}

__all__ = ["DATA", "LAYOUTS", "Layout", "LayoutName", "Site"]
