"""Statistics of answers as pure functions: drops, intervals, tests, agreement."""
