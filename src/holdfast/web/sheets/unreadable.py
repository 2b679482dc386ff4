"""Why a file cannot be read, in plain words."""

from holdfast.domain.message import MessageError


class FileRefused(MessageError):
    """Its message is a sentence for the person who chose the file."""
