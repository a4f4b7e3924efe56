"""Mining: keep the pictures that surrogate models fail on, and measure whether other models fail on them too."""
