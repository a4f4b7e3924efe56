"""Published numbers: what papers and their repositories say of a model on a benchmark, one JSON file per table."""

from counterfoil.numbers.tables import Published, benchmarks, published_numbers, read_numbers

__all__ = ["Published", "benchmarks", "published_numbers", "read_numbers"]
