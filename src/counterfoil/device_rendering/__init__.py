"""Pictures of edits, and the networks' inputs of them, made many at once with torch on a GPU or the CPU."""
