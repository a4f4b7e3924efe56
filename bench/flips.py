"""Flips random bits in what Counterfoil wrote and counts what comes of them.

    python bench/flips.py [--flips 100] [--seed 0]      in a run, an unfinished run, a workspace and a benchmark here
    python bench/flips.py --run FOLDER                  in copies of a finished run, workspace or benchmark of yours
    python bench/flips.py --cache [--flips 20]          in copies of the cache of photos, networks and results

One bit of one file of a copy is flipped at a time, files in turn. Of a finished folder `check` must name it; what it
does not name must be harmless: `report` writes the same as of the folder as it was. An unfinished run must be
refused, or end in the same tables by its own command. With a damaged cache a run over demo photos, in a process of its
own, must end in the same tables or be refused; the count says whether the damaged file was replaced, or never read.
Anything else, and every traceback, is a failure, and the program ends with status 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from counterfoil.assets.cache import cache_folder
from counterfoil.cli import commands
from counterfoil.errors import UserError
from counterfoil.store.result_cache import VARIABLE
from scale import MODEL, MODEL_CODE, write_tiny_photos

RECIPE = "working_size: 64\njudge_fills: false\nedits: [{edit: jpeg}, {edit: background-swap}, {edit: grayscale}]\n"
TABLES = ("variants.parquet", "predictions/*.parquet", "skipped.csv", "masks.csv", "drops.csv")


def flip(path: Path, rng: np.random.Generator) -> str:
    """Flip one bit of a file; says where."""
    content = bytearray(path.read_bytes())
    place, bit = int(rng.integers(len(content))), int(rng.integers(8))
    content[place] ^= 1 << bit
    path.unlink()  # it may be a link to the file of which this is a copy
    path.write_bytes(content)
    return f"byte {place} bit {bit} of {path.name}"


def link_or_copy(source: str, target: str) -> None:
    """A second name for a file, which everything here replaces and never writes into; else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def files_of(folder: Path) -> list[Path]:
    """The files that hold something, relative to the folder."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path.relative_to(folder) for path in found if path.stat().st_size]


def call(*arguments: object) -> str:
    """What came of a command: nothing, the line it refused with, or the traceback."""
    done = CliRunner().invoke(commands, [*map(str, arguments)])
    if done.exception is None or done.exit_code in (3, 4):  # too few photos, not judged
        return ""
    if isinstance(done.exception, UserError | SystemExit):
        return f"refused: {done.exception}"
    return f"TRACEBACK {type(done.exception).__name__}: {done.exception}"


def read_tables(folder: Path) -> dict[str, bytes]:
    """The tables of a run by name."""
    paths = [path for name in TABLES for path in sorted(folder.rglob(name)) if "work" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def try_finished(folder: Path, copy: Path) -> str:
    """Whether `check` finds what was changed in the copy of a finished folder, or it changes nothing that is read."""
    said = call("check", copy)
    if said:
        return "named by check" if said.startswith("refused") else said
    if not (folder / "predictions.parquet").is_file() and not (folder / "predictions").is_dir():
        return "NOT NOTICED"
    pages = []
    for place in (folder, copy):
        out = copy.parent / "page"
        shutil.rmtree(out, ignore_errors=True)
        said = call("report", place, "--out", out)
        if said:
            return "refused by report" if said.startswith("refused") else said
        pages.append({name: (out / name).read_bytes() for name in ("drops.csv", "skipped.csv", "summary.json")})
    return "harmless" if pages[0] == pages[1] else "NOT NOTICED"


def hunt(name: str, folder: Path, flips: int, judge: Callable[[Path, Path], str], rng: np.random.Generator) -> int:
    """Flip bits in copies of a folder and print what came of it; returns the number of failures."""
    counts: Counter[str] = Counter()
    files, failures = files_of(folder), 0
    for number in range(flips):
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            copy = Path(temporary) / "copy"
            shutil.copytree(folder, copy, symlinks=True, copy_function=link_or_copy)
            place = flip(copy / files[number % len(files)], rng)
            outcome = judge(folder, copy)
        if outcome.startswith(("TRACEBACK", "NOT")):
            failures += 1
            print(f"  {name}, {place} ({files[number % len(files)]}): {outcome}", flush=True)
            outcome = outcome.split(maxsplit=1)[0]
        if outcome == "harmless":
            where = files[number % len(files)]
            outcome = f"harmless in {where.parent if where.parent.name else where}"
        counts[outcome] += 1
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(f"{name}: {flips} bits in {len(files)} files: {told}", flush=True)
    return failures


def make_and_hunt(folder: Path, flips: int, rng: np.random.Generator) -> int:
    """Make a run, an unfinished one, a workspace and a benchmark, and flip bits in each."""
    write_tiny_photos(folder, 12)
    (folder / "recipe.yaml").write_text(RECIPE)
    (folder / "scale_model.py").write_text(MODEL_CODE)
    sys.path.insert(0, str(folder))
    source = ["--images", folder / "images", "--masks", folder / "masks", "--recipe", folder / "recipe.yaml"]
    run = ["run", *source, "--model", MODEL]
    steps: Sequence[Sequence[object]] = (
        [*run, "--out", folder / "run"],
        [*run, "--out", folder / "unfinished", "--shard", "1/2"],
        ["build", *source, "--out", folder / "workspace"],
        ["freeze", folder / "workspace", "--out", folder / "benchmark", "--name", "flips", "--version", "1.0.0"],
    )
    for step in steps:
        said = call(*step)
        if said:
            raise SystemExit(f"{step[0]}: {said}")
    expected = read_tables(folder / "run")

    def finish(_: Path, copy: Path) -> str:
        said = call(*run, "--out", copy)
        if said:
            return "refused" if said.startswith("refused") else said
        return "same tables" if read_tables(copy) == expected else "NOT THE SAME TABLES"

    failures = hunt("finished run", folder / "run", flips, try_finished, rng)
    failures += hunt("unfinished run, then its command", folder / "unfinished", flips, finish, rng)
    failures += hunt("workspace", folder / "workspace", flips, try_finished, rng)
    return failures + hunt("frozen benchmark", folder / "benchmark", flips, try_finished, rng)


CACHE_RECIPE = "edits: [{edit: size, levels: {rate: [0.05]}}, {edit: background-swap}, {edit: texture}]\n"
CACHE_MODELS = ("embedded:efficientnet-lite0", "embedded:pp-lcnetv2")
KINDS = ("networks", "assets", "results")  # what a run over demo photos reads


def hunt_in_cache(folder: Path, flips: int, rng: np.random.Generator) -> int:
    """Flip bits in copies of the cache, kinds of files in turn; returns the number of failures."""
    (folder / "recipe.yaml").write_text(CACHE_RECIPE)
    whole, copy = folder / "whole", folder / "cache"
    for kind in KINDS[:2]:
        shutil.copytree(cache_folder() / kind, copy / kind, copy_function=link_or_copy)
    expected, said = run_with_cache(copy, folder / "run")
    if said:
        raise SystemExit(f"the run over a whole cache: {said}")
    copy.rename(whole)  # the tables name the photos' files, so every run has its cache at one place
    counts: Counter[str] = Counter()
    failures = 0
    for number in range(flips):
        kind = KINDS[number % len(KINDS)]
        shutil.copytree(whole, copy, copy_function=link_or_copy)
        name = rng.choice([str(path) for path in files_of(copy / kind)])
        place = flip(copy / kind / name, rng)
        damaged = (copy / kind / name).read_bytes()
        tables, said = run_with_cache(copy, folder / "run")
        stays = (copy / kind / name).is_file() and (copy / kind / name).read_bytes() == damaged
        if said:
            outcome = "refused" if "Traceback" not in said else "TRACEBACK"
        elif tables != expected:
            outcome = "NOT THE SAME TABLES"
        else:
            outcome = "same tables, not read" if stays else "same tables, replaced"
        if outcome.isupper():
            failures += 1
            print(f"  {place} in {kind}: {outcome}: {said[-300:]}", flush=True)
        counts[f"{outcome} in {kind}"] += 1
        shutil.rmtree(copy)
    told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
    print(f"cache: {flips} bits: {told}", flush=True)
    return failures


def run_with_cache(cache: Path, out: Path) -> tuple[dict[str, bytes], str]:
    """The tables of a run over demo photos with this cache, and what it said where it failed."""
    shutil.rmtree(out, ignore_errors=True)
    words = ["run", "--images", "demo:", "--recipe", out.parent / "recipe.yaml", "--limit", 3, "--out", out, "--quiet"]
    words += [word for model in CACHE_MODELS for word in ("--model", model)]
    environment = {**os.environ, "COUNTERFOIL_CACHE": str(cache), VARIABLE: "200"}
    done = subprocess.run(
        [sys.executable, "-m", "counterfoil", *map(str, words)], capture_output=True, text=True, env=environment,
        check=False,
    )  # fmt: skip
    return read_tables(out), "" if done.returncode in (0, 3, 4) else done.stderr or str(done.returncode)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flips", type=int, default=100, help="in each kind of folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--cache", action="store_true")
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    if asked.run is not None:
        failures = hunt(str(asked.run), asked.run, asked.flips, try_finished, rng)
    else:
        with tempfile.TemporaryDirectory() as temporary:
            failures = (hunt_in_cache if asked.cache else make_and_hunt)(Path(temporary), asked.flips, rng)
    raise SystemExit(1 if failures else 0)


if __name__ == "__main__":
    main()
