"""ImageNet-E."""
