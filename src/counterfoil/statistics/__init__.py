"""Statistics of answers: drops, intervals, tests, agreement; pure functions."""
