"""Errors that only HTTP has: the form of a request, its media type, its path."""

from collections.abc import Iterable

from holdfast.domain.errors import DomainError, Message


class HttpError(DomainError):
    """The request is not valid in its form, whatever it asks for."""


class MalformedBody(HttpError):
    pass


class MalformedRequest(HttpError):
    pass


class TwoCredentials(MalformedRequest):
    text = "The request has more than one Authorization header; send one."


class BodyTooLarge(HttpError):
    text = "The body is larger than %(limit)s."
    is_size = True

    def __init__(self, limit: int) -> None:
        super().__init__(Message(self.text, {"limit": size_text(limit) if self.is_size else limit}))


class ItemTooLarge(BodyTooLarge):
    text = "One of the units in the body is larger than %(limit)s."


class QueryTooLarge(BodyTooLarge):
    text = "The query string is larger than %(limit)s."


class TooManyParameters(BodyTooLarge):
    is_size = False
    text = "The address has more than %(limit)s query parameters."


class TooManyFields(BodyTooLarge):
    is_size = False
    text = "The form has more than %(limit)s fields."


class TooManyItems(BodyTooLarge):
    is_size = False
    text = "The body has more than %(limit)s units; send them in several."


class UnsupportedMediaType(HttpError):
    def __init__(self, accepted: Iterable[str]) -> None:
        names = " or ".join(f"`{name}`" for name in accepted)
        message = "Send the body as %(types)s in UTF-8, without a Content-Encoding."
        super().__init__(Message(message, {"types": names}))


class MethodNotAllowed(HttpError):
    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = tuple(allowed)
        message = "%(method)s is not allowed here; allowed: %(methods)s."
        super().__init__(Message(message, {"method": method, "methods": ", ".join(self.allowed)}))


class UnknownRoute(HttpError):
    text = "There is nothing at this path."


class Forbidden(HttpError):
    text = "Your role does not include this. Ask an admin if you need it."


class ForeignForm(HttpError):
    text = "This form is out of date. Go back, reload the page and try again."


class ForeignSite(ForeignForm):
    text = "This was sent by a page of another site, which is not allowed."


def size_text(limit: int) -> str:
    return f"{limit // 1024} KiB" if limit < 1024**2 else f"{limit // 1024**2} MiB"
