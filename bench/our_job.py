"""The whole job with Counterfoil: `python our_job.py IMAGES MASKS [shares]`; "shares" prints where the time goes."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import counterfoil
from counterfoil.store.parquet import read_table
from counterfoil.store.result_cache import VARIABLE
from pairing import report_turn
from sampling import sampled

RECIPE = Path(__file__).with_name("twenty.yaml")


def job(images: str, masks: str) -> int:
    """Edit, predict and write the tables; gives back how many pictures were answered."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as out:
        counterfoil.run(images, ["embedded:efficientnet-lite0"], masks=masks, recipe=str(RECIPE), out=out)
        (table,) = Path(out, "predictions").glob("*.parquet")
        return len(read_table(table)["variant_id"])


def main() -> None:
    """Do the job once, with or without a look at where its time goes."""
    images, masks, *shares = sys.argv[1:]
    report_turn(lambda: sampled(lambda: job(images, masks)) if shares else job(images, masks))


if __name__ == "__main__":
    os.environ[VARIABLE] = "0"  # every turn does all its work
    main()
