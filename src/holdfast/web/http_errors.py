"""Errors that only HTTP has: the form of a request, its media type, its path."""

from collections.abc import Iterable

from holdfast.domain.errors import DomainError
from holdfast.domain.message import Message


class HttpError(DomainError):
    """The request is not valid in its form, whatever it asks for."""


class MalformedBody(HttpError):
    pass


class MalformedRequest(HttpError):
    pass


class TwoCredentials(MalformedRequest):
    def __init__(self) -> None:
        super().__init__("The request has more than one Authorization header; send one.")


class BodyTooLarge(HttpError):
    def __init__(self, limit: int) -> None:
        super().__init__(Message("The body is larger than %(limit)s.", {"limit": size_text(limit)}))


class TooManyParameters(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        message = "The address has more than %(limit)s query parameters."
        super(BodyTooLarge, self).__init__(Message(message, {"limit": limit}))


class TooManyFields(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        message = "The form has more than %(limit)s fields."
        super(BodyTooLarge, self).__init__(Message(message, {"limit": limit}))


class ItemTooLarge(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        message = "One unit of the body is larger than %(limit)s MiB."
        super(BodyTooLarge, self).__init__(Message(message, {"limit": limit // 1024**2}))


class TooManyItems(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        message = "The body has more than %(limit)s units; send them in several."
        super(BodyTooLarge, self).__init__(Message(message, {"limit": limit}))


class UnsupportedMediaType(HttpError):
    def __init__(self, accepted: Iterable[str]) -> None:
        names = " or ".join(f"`{name}`" for name in accepted)
        message = "Send the body as %(types)s in UTF-8, without a Content-Encoding."
        super().__init__(Message(message, {"types": names}))


class MethodNotAllowed(HttpError):
    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = tuple(allowed)
        message = "%(method)s is not possible here; possible: %(methods)s."
        super().__init__(Message(message, {"method": method, "methods": ", ".join(self.allowed)}))


class UnknownRoute(HttpError):
    def __init__(self) -> None:
        super().__init__("There is nothing at this path.")


class Forbidden(HttpError):
    """Somebody is signed in, and may not do this."""

    def __init__(self) -> None:
        super().__init__("Your role does not include this. Ask an admin if you need it.")


class ForeignForm(HttpError):
    """A form that was not given to this person, or long ago."""

    def __init__(self) -> None:
        super().__init__("This form is out of date. Go back, reload the page and try again.")


class ForeignSite(ForeignForm):
    """A request that a page of another site has a browser send."""

    def __init__(self) -> None:
        super(ForeignForm, self).__init__("A page of another site sent this, and that site may not.")


def size_text(limit: int) -> str:
    return f"{limit // 1024} KiB" if limit < 1024**2 else f"{limit // 1024**2} MiB"
