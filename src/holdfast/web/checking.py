"""From a parsed body to its values, or to every fault of its form at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.refusals import Fault, InvalidInput
from holdfast.web.fields import PATTERN_MESSAGES
from holdfast.web.wire import camel_case

_UNKNOWN_NAME = "extra_forbidden"
_NO_SUCH_FIELD = "There is no field of this name."

_MESSAGES = {
    "missing": "This field is required.",
    _UNKNOWN_NAME: _NO_SUCH_FIELD,
    "is_instance_of": "This must be a number.",
    "string_type": "This must be text.",
    "string_unicode": "This text holds a lone surrogate, which is not a character.",
    "string_pattern_mismatch": "This text does not have the form that is asked for.",
    "string_too_short": "This must have at least %(min_length)s characters.",
    "string_too_long": "This must have at most %(max_length)s characters.",
    "bool_type": "This must be true or false.",
    "finite_number": "This number is beyond all bounds.",
    "greater_than": "This must be greater than %(gt)s.",
    "greater_than_equal": "This must be at least %(ge)s.",
    "less_than_equal": "This must be at most %(le)s.",
    "decimal_max_places": "This must have at most %(decimal_places)s decimals.",
    "dict_type": "This must be an object.",
    "list_type": "This must be an array.",
    "literal_error": "This must be %(expected)s.",
    "too_short": "This must have at least %(min_length)s elements.",
    "too_long": "This must have at most %(max_length)s elements.",
}

_MESSAGES_OF_ONE = {
    "string_too_short": "This must have at least 1 character.",
    "too_short": "This must have at least 1 element.",
}
_PARAMETERS = ("min_length", "max_length", "gt", "ge", "le", "decimal_places", "expected")

# Where a value may have one of several forms, pydantic names the form in the place of a fault. Ours are
# called so that they are not taken for a part of the place.
_FORM = re.compile(r"<[a-z]+>")


def names_of(body: type) -> frozenset[str]:
    """The names that a ``TypedDict`` has on the wire."""
    return frozenset(map(camel_case, body.__annotations__))


def checked(adapter: TypeAdapter[Any], body: Any, names: frozenset[str]) -> dict[str, Any] | list[Fault]:
    """The body's values under the domain's names, or its faults; ``names`` are all that it may have."""
    if type(body) is not dict:
        return [Fault("", "The body must be a JSON object.")]
    unknown: list[Fault] = []
    # Unknown names are sifted out first: pydantic takes ten times as long to tell them, and at one that is
    # no text it stops looking.
    if not names.issuperset(body):
        unknown = _unknown_names(name for name in body if name not in names)
        body = {name: value for name, value in body.items() if name in names}
    try:
        valid: dict[str, Any] = adapter.validate_python(body)
    except ValidationError as failure:
        return [_fault(error) for error in failure.errors(include_url=False)] + unknown
    return unknown or valid


def valid_body(
    adapter: TypeAdapter[Any], body: Any, names: frozenset[str], faults: Sequence[Fault] = ()
) -> dict[str, Any]:
    """The body's values, if neither it nor the rest of the request (``faults``) has a fault."""
    found = checked(adapter, body, names)
    refuse_faults([*faults, *found] if isinstance(found, list) else faults)
    assert isinstance(found, dict)
    return found


def no_fields(body: Any) -> list[Fault]:
    """The faults of a body where none is needed: everything that stands in it."""
    return _unknown_names(body) if type(body) is dict else [Fault("", "The body must be a JSON object.")]


def refuse_faults(faults: Sequence[Fault]) -> None:
    if faults:
        raise InvalidInput(faults)


def _unknown_names(names: Iterable[str]) -> list[Fault]:
    return [Fault(_pointer([name]), _NO_SUCH_FIELD) for name in names]


def _fault(error: ErrorDetails) -> Fault:
    kind, location = error["type"], error["loc"]
    if kind == _UNKNOWN_NAME:
        return Fault(_pointer([*_place(location[:-1]), location[-1]]), _NO_SUCH_FIELD)
    return Fault(_pointer(_place(location)), _message(kind, error))


def _message(kind: str, error: ErrorDetails) -> AnyMessage:
    context = error.get("ctx", {})
    if kind not in _MESSAGES:
        # One of our own kinds, which brings its message along.
        message: AnyMessage = context.get("message", error["msg"])
        return message
    if error["input"] is None:
        return "This field cannot be null."
    if "pattern" in context:
        return PATTERN_MESSAGES.get(context["pattern"], _MESSAGES[kind])
    if context.get("min_length") == 1:
        return _MESSAGES_OF_ONE[kind]
    parameters = {name: context[name] for name in _PARAMETERS if name in context}
    return Message(_MESSAGES[kind], parameters) if parameters else _MESSAGES[kind]


def _place(location: Iterable[int | str]) -> list[int | str]:
    return [part for part in location if not (isinstance(part, str) and _FORM.fullmatch(part))]


def _pointer(place: Iterable[int | str]) -> str:
    """RFC 6901; a name that is not text as JSON knows it is shown with escapes."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in place)
    return "".join(f"/{part.encode(errors='backslashreplace').decode()}" for part in parts)
