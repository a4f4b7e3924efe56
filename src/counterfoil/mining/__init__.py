"""Pictures on which surrogate models fail together: selection, estimates, page.

Pure functions on arrays: who was right where comes in, which pictures are kept and what that does comes out. Intervals
are the caller's: a function that takes `Photos` gives shares with what they owe to each photo.
"""
