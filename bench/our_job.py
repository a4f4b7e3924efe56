"""The whole job with Counterfoil: `python our_job.py IMAGES MASKS judged|unjudged [shares]`.

Judged fills are made in up to four ways, measured and refused where they would show; unjudged ones are patches of the
photo, as other programs fill. "shares" prints where the time goes.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import counterfoil
from counterfoil.recipes.edit_recipe import load_recipe
from counterfoil.store.parquet import read_table
from counterfoil.store.result_cache import VARIABLE
from pairing import report_turn
from sampling import sampled

RECIPE = Path(__file__).with_name("twenty.yaml")


def job(images: str, masks: str, fills: str) -> int:
    """Edit, predict and write the tables; gives back how many pictures were answered."""
    recipe = load_recipe(str(RECIPE)).model_copy(update={"judge_fills": fills == "judged"})
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as out:
        counterfoil.run(images, ["embedded:efficientnet-lite0"], masks=masks, recipe=recipe, out=out)
        (table,) = Path(out, "predictions").glob("*.parquet")
        return len(read_table(table)["variant_id"])


def main() -> None:
    """Do the job once, with or without a look at where its time goes."""
    images, masks, fills, *shares = sys.argv[1:]
    report_turn(lambda: sampled(lambda: job(images, masks, fills)) if shares else job(images, masks, fills))


if __name__ == "__main__":
    os.environ[VARIABLE] = "0"  # every turn does all its work
    main()
