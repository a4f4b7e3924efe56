"""The benchmark folder: manifest, hashes, card, layouts, and the check that nothing was changed."""

from counterfoil.freeze.benchmark import open_benchmark
from counterfoil.freeze.checking import differences, pixel_differences
from counterfoil.freeze.choosing import Choice
from counterfoil.freeze.comparing import compare, comparison_lines, read_edition
from counterfoil.freeze.draft import IN_DOUBT, Draft, Title
from counterfoil.freeze.entries import Entry
from counterfoil.freeze.layouts import LAYOUTS, LayoutName
from counterfoil.freeze.licences import redistributable
from counterfoil.freeze.record import read_record
from counterfoil.freeze.writing import Frozen, write_benchmark

__all__ = [
    "IN_DOUBT", "LAYOUTS", "Choice", "Draft", "Entry", "Frozen", "LayoutName", "Title", "compare", "comparison_lines",
    "differences", "open_benchmark", "pixel_differences", "read_edition", "read_record", "redistributable",
    "write_benchmark",
]  # fmt: skip
