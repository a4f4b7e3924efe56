"""ImageNet-9 and the Backgrounds challenge."""
