"""The documentation: its links lead somewhere, its Python runs, its site builds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from locations import ROOT

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")])
WITH_CODE = ("README", "tutorial", "python", "how_to_engineer", "how_to_researcher", "how_to_benchmark_author",
             "how_to_release_manager")  # fmt: skip
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and mkdocs make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for target in LINK.findall(text):
        path, _, anchor = target.partition("#")
        if ":" in path:
            continue
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name}: {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{page.name}: {target}"


@pytest.mark.parametrize("name", [*WITH_CODE, pytest.param("repair", marks=pytest.mark.torch)])
def test_the_python_of_a_page_runs(name: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / f"{name}.md").read_text(), re.DOTALL)
    script = tmp_path / f"{name}.py"
    fewer = re.sub(r"limit=1[26]", "limit=5", "\n".join(blocks))  # than a reader would take
    script.write_text(fewer)
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 30
    fetched = re.compile(r"<(?:script|link|img)[^>]+(?:src|href)=[\"'](?:https?:)?//(?!localhost)", re.IGNORECASE)
    assert not [page.name for page in pages if fetched.search(page.read_text())]  # it works without the internet


@pytest.mark.parametrize("source", sorted((ROOT / "examples" / "notebooks").glob("*.py")), ids=lambda path: path.stem)
def test_a_notebook_executes_from_its_source(source: Path) -> None:
    jupytext, nbclient = pytest.importorskip("jupytext"), pytest.importorskip("nbclient")
    if source.stem == "torch_model":
        pytest.importorskip("torch")
    notebook = jupytext.read(source)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    assert any("text/html" in output.get("data", {}) for output in shown)
