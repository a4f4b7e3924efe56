"""Before and after: did the new checkpoint get worse anywhere?"""

import counterfoil as cf

edits = ["background-plain", "object-grayscale"]
old = cf.run("demo:", {"net": "embedded:efficientnet-lite2"}, edits=edits, limit=8)
new = cf.run("demo:", {"net": "embedded:efficientnet-lite0"}, edits=edits, limit=8)

print(cf.compare(old, new, names=["old", "new"]))
verdict = cf.gate(new, against=old, margin={"background": 2, "colour": 2, "accuracy": 1})
print(verdict)
print("release" if verdict else f"do not release: {verdict.verdict}")
