"""Why a file cannot be read, in plain words."""


class FileRefused(Exception):
    """Its text is a sentence for the person who chose the file."""
