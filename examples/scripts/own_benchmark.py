"""A benchmark of your own: build, mine what a surrogate fails on, freeze, evaluate another model."""

import tempfile

import counterfoil as cf

folder = tempfile.mkdtemp()
workspace = cf.build("demo:", f"{folder}/work", edits=["size", "background-swap"], limit=8)
mined = cf.mine(workspace, ["embedded:efficientnet-lite0"], targets=["embedded:pp-lcnetv2"])
print(*mined.lines, sep="\n")
benchmark = cf.freeze(workspace, f"{folder}/mine-1.0.0", name="mine", version="1.0.0", licence="see NOTICE")
result = cf.evaluate(benchmark, {"new": "embedded:efficientnet-lite2"})
print(result.headline[0])
