"""Settings of the property tests: the same examples every time; `--hypothesis-profile search` looks for new ones."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=50)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("fixed")
