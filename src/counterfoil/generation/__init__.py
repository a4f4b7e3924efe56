"""Generation of whole pictures from prompts, and their quality control."""
