"""What goes wrong through input, not through a bug."""


class UserError(Exception):
    """Input that cannot be used: one line that says what was expected, what came and what to do."""


class Unusable(Exception):
    """One picture that cannot be read, masked or edited: becomes a counted row with this reason."""


class Unsegmented(Unusable):
    """One photo whose object the segmenter could not find plausibly."""
