"""Published benchmarks: their readers, scores, published numbers, and the leaderboard."""
