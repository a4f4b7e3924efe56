"""Photos with labels and masks, from folders, annotation formats and datasets."""
