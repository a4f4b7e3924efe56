"""A published benchmark, scored as its paper does: python published_archive.py imagenet-e:PATH."""

import sys

import counterfoil as cf

archive = sys.argv[1]  # a folder, .tar or .zip; docs/published.md names the layouts
result = cf.evaluate(archive, {"lite0": "embedded:efficientnet-lite0"}, limit=8)
print(*result.headline, sep="\n")
print(result.report("published-run"))
