"""The workspace on disk: the only room that opens workspace files."""

from counterfoil.store.files import write_atomically
from counterfoil.store.journal import Journal
from counterfoil.store.parquet import Kind, TableWriter, write_table
from counterfoil.store.parquet_reading import read_table
from counterfoil.store.results import Made, ResultTables, prediction_files, read_variants

__all__ = [
    "Journal", "Kind", "Made", "ResultTables", "TableWriter", "prediction_files", "read_table", "read_variants",
    "write_atomically", "write_table",
]  # fmt: skip
