"""Draw the rooms of the package and their imports from the code: python docs/figures/draw_rooms.py [--check]

Writes docs/figures/rooms.svg; with --check nothing is written, and the exit status is 1 where it would change.

An arrow stands for at least one import. Arrows that follow from others (a room that imports B, which imports C, may
import C too) are left out.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "counterfoil"
FIGURE = Path(__file__).with_name("rooms.svg")
ROW, TOP, NAMES, WORDS, WIDTH = 26, 34, 330, 470, 1160  # pixels
STEP = 13  # between two arcs
LONGEST = 96  # characters of a room's description


def order() -> list[str]:
    """The rooms from the first to the last, as import-linter enforces them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = settings["tool"]["importlinter"]["contracts"][0]
    names = [layer.removeprefix("counterfoil.") for layer in contract["layers"] if not layer.startswith("(")]
    return names[::-1]


def files_of(room: str) -> list[Path]:
    """The Python files of a room."""
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{room}.py"]


def imported_rooms(room: str) -> set[str]:
    """The rooms that a room imports anywhere, inside functions and for types too."""
    modules = set()
    for path in files_of(room):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("counterfoil"):
                parts = node.module.split(".")
                modules |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return modules - {room, "__version__"}


def without_implied(arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no path of others implies."""
    reached: dict[str, set[str]] = {}
    for room in arrows:  # in the order of the rooms: what a room imports was seen before it
        reached[room] = set().union(*({other} | reached[other] for other in arrows[room]))
    return {
        room: {other for other in others if not any(other in reached[third] for third in others - {other})}
        for room, others in arrows.items()
    }


def description(room: str) -> str:
    """The first sentence of a room's docstring."""
    path = PACKAGE / room / "__init__.py" if (PACKAGE / room).is_dir() else PACKAGE / f"{room}.py"
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return first if len(first) <= LONGEST else f"{first[: LONGEST - 1].rsplit(' ', 1)[0]} …"


def draw() -> str:
    """The figure as SVG."""
    rooms = order()
    arrows = without_implied({room: imported_rooms(room) & set(rooms) for room in rooms})
    height = {room: TOP + ROW * place for place, room in enumerate(reversed(rooms))}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {TOP + ROW * len(rooms)}" '
        'font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#456"/></marker></defs>',
        '<text x="12" y="18" font-size="12" fill="#555">A room may import the rooms below it. '
        "Arrows that follow from others are left out.</text>",
    ]
    for room in rooms:
        y = height[room]
        count = len([path for path in files_of(room) if path.name != "__init__.py"])
        files = f"{count} files" if count > 1 else "1 file"
        parts.append(f'<rect x="{NAMES}" y="{y}" width="126" height="{ROW - 6}" rx="4" fill="#e8eef4" stroke="#89a"/>')
        parts.append(f'<text x="{NAMES + 8}" y="{y + 15}" font-weight="bold">{room}</text>')
        parts.append(f'<text x="{WORDS}" y="{y + 15}" fill="#777">{files}</text>')
        parts.append(f'<text x="{WORDS + 62}" y="{y + 15}">{escape(description(room))}</text>')
    for room in rooms:
        for other in sorted(arrows[room], key=rooms.index):
            distance = rooms.index(room) - rooms.index(other)
            start, end = height[room] + ROW / 2, height[other] + ROW / 2 - 6
            left = NAMES - 16 - STEP * distance
            parts.append(
                f'<path d="M{NAMES} {start:g} C{left} {start:g} {left} {end:g} {NAMES} {end:g}" fill="none" '
                'stroke="#456" stroke-opacity="0.75" marker-end="url(#head)"/>'
            )
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    if "--check" not in sys.argv:
        FIGURE.write_text(draw(), encoding="utf-8")
        print(f"wrote {FIGURE}")
    elif draw() != FIGURE.read_text(encoding="utf-8"):
        sys.exit("docs/figures/rooms.svg shows other rooms than the code has: run `make rooms`")
