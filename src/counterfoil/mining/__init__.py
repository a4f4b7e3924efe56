"""Mining: keep the pictures that surrogate models fail on, and see whether other models fail on them too."""
