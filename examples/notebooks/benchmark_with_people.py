# %% [markdown]
# # A benchmark with people
# Build pictures, keep what a surrogate fails on, let people confirm them, freeze.

# %%
import tempfile
from pathlib import Path

import counterfoil as cf

folder = Path(tempfile.mkdtemp())
workspace = cf.build("demo:", folder / "work", edits=["size", "background-swap"], limit=8)
mined = cf.mine(workspace, ["embedded:efficientnet-lite0"], targets=["embedded:pp-lcnetv2"])
mined

# %% [markdown]
# People look at the pictures on a page of their own: `counterfoil verify serve WORK`. Answers may also come as files,
# as here, where three made-up annotators confirm every picture but one.

# %%
import csv

pictures = [stored.variant.id for stored in workspace.pictures]
with (folder / "answers.csv").open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["variant_id", "annotator", "question", "answer"])
    for annotator in ("Ada", "Ben", "Cleo"):
        for picture in pictures:
            writer.writerow([picture, annotator, "recognisable", "no" if picture == mined.mined.kept[0] else "yes"])
            writer.writerow([picture, annotator, "only", "yes"])
verified = cf.verify(workspace, folder / "answers.csv")
sum(decision.kept for decision in verified.decisions), len(verified.decisions)

# %%
benchmark = cf.freeze(workspace, folder / "mine-1.0.0", name="mine", version="1.0.0", licence="see NOTICE")
benchmark

# %%
cf.evaluate(benchmark, {"new": "embedded:efficientnet-lite2"})
