"""What is fetched once into the cache: networks, photos, weights, and how networks become ONNX."""
