"""ImageNet-C."""
