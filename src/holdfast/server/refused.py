"""Why Holdfast did not start."""


class StartRefused(Exception):
    """The text is one sentence for the person who started Holdfast."""
