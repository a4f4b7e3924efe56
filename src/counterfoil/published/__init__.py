"""The published benchmarks: readers, their papers' scores and numbers, the leaderboard."""
