"""XImageNet-12."""
