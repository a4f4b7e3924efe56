"""A user's script, for type checkers: every line that ends in a comment is wrong."""

import counterfoil as cf

cf.nope  # error
cf.edits.Sise  # error
cf.run("photos")  # error
cf.edits.Size(0.1).levl  # error
cf.gate("out", max_drop=5, bound="upper").verdikt  # error
