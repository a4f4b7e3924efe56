"""Label spaces: class names, WordNet ids, the classes of benchmarks."""
