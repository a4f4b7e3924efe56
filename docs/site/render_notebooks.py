"""Execute the notebooks of examples/notebooks and write them as pages: `make docs` runs this after the site."""

from __future__ import annotations

import sys
from pathlib import Path

import jupytext
from nbclient import NotebookClient
from nbconvert import HTMLExporter

ROOT = Path(__file__).parents[2]


def execute(source: Path) -> object:
    """A notebook made of its percent script, with the output of every cell."""
    notebook = jupytext.read(source)
    NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return notebook


def main(out: Path) -> None:
    """Write a page for each notebook."""
    out.mkdir(parents=True, exist_ok=True)
    exporter = HTMLExporter(require_js_url="", mathjax_url="", embed_images=True)
    for source in sorted((ROOT / "examples" / "notebooks").glob("*.py")):
        page, _ = exporter.from_notebook_node(execute(source))
        (out / f"{source.stem}.html").write_text(page, encoding="utf-8")
        print(out / f"{source.stem}.html")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
