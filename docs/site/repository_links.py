"""A hook of mkdocs: links out of docs/ become plain text on the site, and notebooks are shown as pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s]+)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Keep the text of links to files of the repository that are no pages of the site."""
    folder = posixpath.dirname(page.file.src_uri)

    def keep(match: re.Match[str]) -> str:
        target = match[2]
        if ":" in target or target.startswith("/"):
            return match[0]
        place = posixpath.normpath(posixpath.join(folder, target))
        inside = not place.startswith("..") and (Path(config["docs_dir"]) / place).is_file()
        return match[0] if inside and not place.endswith(".py") else match[1]

    return _LINK.sub(keep, markdown)
