"""The questions that a finished run answers: the papers' measures, and what their authors left open."""
