"""The embedded networks: from torch's and Paddle's files to ONNX, executing nothing of them."""

from counterfoil.embedded.networks.converting import NETWORKS, Network, gradient, normalised, onnx_file

__all__ = ["NETWORKS", "Network", "gradient", "normalised", "onnx_file"]
