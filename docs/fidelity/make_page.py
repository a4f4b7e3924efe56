"""Write docs/fidelity.md from docs/fidelity/fidelity.yaml: `python docs/fidelity/make_page.py`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
DATA, PAGE = HERE / "fidelity.yaml", HERE.parent / "fidelity.md"
MEANING = {
    "same": "what the paper or its release does",
    "setting": "the released form is a setting, and our default differs for the reason given",
    "differs": "done in another way, for the reason given",
    "absent": "not done",
}
KNOWN = {
    "code": "read in the released code",
    "reader": "agreed by independent readers of the archive",
    "paper": "stated in the paper",
    "inferred": "follows from these",
    "silent": "the sources do not say",
}
INTRODUCTION = (
    "# fidelity: what the papers do, and what we do\n\n"
    "One row per sentence about method in the papers and their releases: edit definitions, rates, angles, tolerances,"
    " lambda, strength, templates, counts, rules of failure, wording of questions, scoring, formats.\n"
    "The page is made from [fidelity/fidelity.yaml](fidelity/fidelity.yaml) by `python docs/fidelity/make_page.py`. The"
    " data also names the defaults behind each row, and a test compares them with the code: a changed default fails"
    " until its row is looked at again.\n"
)


def load() -> dict[str, Any]:
    """The rows by paper."""
    papers: dict[str, Any] = yaml.safe_load(DATA.read_text(encoding="utf-8"))
    return papers


def render(papers: dict[str, Any]) -> str:
    """The whole page."""
    rows = [row for paper in papers.values() for row in paper["rows"]]
    counts = Counter(row["verdict"] for row in rows)
    lines = [INTRODUCTION, "| verdict | rows | meaning |", "|---|---|---|"]
    lines += [f"| {verdict} | {counts[verdict]} | {meaning} |" for verdict, meaning in MEANING.items()]
    known = "; ".join(f"*{word}*: {meaning}" for word, meaning in KNOWN.items())
    lines += ["", f"How the left side is known: {known}.", ""]
    for paper in papers.values():
        lines += [f"## {paper['title']}", "| what | paper or release | here | where | |", "|---|---|---|---|---|"]
        lines += [_line(row) for row in paper["rows"]]
        lines.append("")
    return "\n".join(lines)


def _line(row: dict[str, Any]) -> str:
    where = ", ".join(f"[{Path(path).name}](../{path})" for path in row["where"])
    verdict = f"**{row['verdict']}**" + (f": {row['why']}" if row.get("why") else "")
    cells = (row["topic"], f"{row['said']} (*{row['known']}*)", row["ours"], where, verdict)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(render(load()), encoding="utf-8")


if __name__ == "__main__":
    main()
