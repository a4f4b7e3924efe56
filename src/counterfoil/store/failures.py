"""The pieces of a run that failed as often as is tried, each with its reason, in a folder beside the parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import UserError
from counterfoil.store.files import write_atomically
from counterfoil.store.folder_mirror import put_file, remove_file


@dataclass(frozen=True)
class FailureStore:
    """One small file for each piece that was set aside."""

    folder: Path

    def write(self, name: str, record: Mapping[str, Any]) -> None:
        """Record a failure: which items and models, the reason, the attempts."""
        put_file(write_atomically(self.folder / f"{name}.json", json.dumps(record, indent=1)))

    def remove(self, name: str) -> None:
        """Forget a failure, when the piece was made after all."""
        path = self.folder / f"{name}.json"
        if path.is_file():
            remove_file(path)

    def read(self) -> list[dict[str, Any]]:
        """The failures, in the order of their items."""
        if not self.folder.is_dir():
            return []
        try:
            rows = [json.loads(path.read_text(encoding="utf-8")) for path in self.folder.glob("[!.]*.json")]
            return sorted(rows, key=lambda row: (row["start"], row["models"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(
                f"expected records of failed pieces in {self.folder}, one is damaged: {error}; remove that folder"
            ) from error
