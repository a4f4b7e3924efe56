"""Small look-alikes of the published archives: same layout, names, formats and stray files, answers known."""
