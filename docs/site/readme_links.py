"""Make the README's links absolute, in place, before a build: a package index shows it without the repository."""

from __future__ import annotations

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_LINK = re.compile(r"(!?)\[([^\]]+)\]\((?![a-z]+:|#|/)([^)\s]+)\)")


def make_links_absolute(markdown: str, source: str, version: str) -> str:
    """Links to files of the repository as addresses of the tag `v<version>` under `source`; pictures as raw files."""

    def absolute(match: re.Match[str]) -> str:
        kind = "raw" if match[1] else "blob"
        return f"{match[1]}[{match[2]}]({source.rstrip('/')}/{kind}/v{version}/{match[3]})"

    return _LINK.sub(absolute, markdown)


def main() -> None:
    """Rewrite README.md of the current folder by its pyproject.toml."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project.get("urls", {}).get("Source")
    if source is None:
        sys.exit("expected an address named Source under [project.urls] in pyproject.toml; add it before a release")
    readme = Path("README.md")
    readme.write_text(
        make_links_absolute(readme.read_text(encoding="utf-8"), source, project["version"]), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
