"""Reasons to say no that only HTTP has."""

from collections.abc import Iterable

from holdfast.domain.refusals import Refusal


class RequestRefused(Refusal):
    """The request is refused for its form, before it means anything."""


class MalformedBody(RequestRefused):
    pass


class TwoCredentials(RequestRefused):
    def __init__(self) -> None:
        super().__init__("The request has more than one Authorization header; send one.")


class MalformedRequest(RequestRefused):
    def __init__(self) -> None:
        super().__init__("This is not a well-formed HTTP/1.1 request.")


class BodyTooLarge(RequestRefused):
    def __init__(self, limit: int) -> None:
        super().__init__(f"The body is larger than {limit // 1024**2} MiB.")


class ItemTooLarge(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        super(BodyTooLarge, self).__init__(f"One unit of the body is larger than {limit // 1024**2} MiB.")


class TooManyItems(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        super(BodyTooLarge, self).__init__(f"The body has more than {limit} units; send them in several.")


class UnsupportedMediaType(RequestRefused):
    def __init__(self, accepted: Iterable[str]) -> None:
        names = " or ".join(f"`{name}`" for name in accepted)
        super().__init__(f"Send the body as {names} in UTF-8, without a Content-Encoding.")


class MethodNotAllowed(RequestRefused):
    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        self.allowed = tuple(allowed)
        super().__init__(f"{method} is not possible here; possible: {', '.join(self.allowed)}.")


class UnknownRoute(RequestRefused):
    def __init__(self) -> None:
        super().__init__("There is nothing at this path.")


class NotYours(RequestRefused):
    """Somebody is signed in, and may not do this."""

    def __init__(self) -> None:
        super().__init__("Your role does not include this. Ask an admin if you need it.")


class ForeignForm(RequestRefused):
    """A form that was not given to this person, or long ago."""

    def __init__(self) -> None:
        super().__init__("This form is out of date. Go back, reload the page and try again.")


class ForeignSite(ForeignForm):
    """A request that a page of another site has a browser send."""

    def __init__(self) -> None:
        super(ForeignForm, self).__init__("A page of another site sent this, and that site may not.")


class ClientGone(Exception):
    """The client hung up before its request was complete; there is nobody to answer."""
