"""Why the embedded database cannot be had."""


class EmbeddedRefused(Exception):
    """The text is one sentence for the person who started Holdfast."""
