"""Assets (networks, photos, weights) fetched once into the cache, and networks converted to ONNX."""
