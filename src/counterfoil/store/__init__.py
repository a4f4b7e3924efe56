"""The workspace on disk: the only room that opens workspace files."""

from counterfoil.store.files import folder_name, write_atomically
from counterfoil.store.journal import Journal
from counterfoil.store.parquet import (
    Coded,
    Kind,
    TableWriter,
    coded,
    open_parquet,
    read_coded,
    read_table,
    write_table,
)
from counterfoil.store.results import Made, ResultTables, prediction_files, read_variants
from counterfoil.store.workspace import Workspace, picture_file

__all__ = [
    "Coded", "Journal", "Kind", "Made", "ResultTables", "TableWriter", "Workspace", "coded", "folder_name",
    "open_parquet", "picture_file", "prediction_files", "read_coded", "read_table", "read_variants",
    "write_atomically", "write_table",
]  # fmt: skip
