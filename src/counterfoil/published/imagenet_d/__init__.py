"""ImageNet-D."""
