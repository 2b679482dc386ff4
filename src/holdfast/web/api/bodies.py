"""Request bodies: a pydantic model each, from which parsing, checks and the JSON schema follow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from holdfast.domain.booking import Buyer
from holdfast.domain.errors import AnyMessage, Fault, InvalidInput, Message
from holdfast.web.fields import BUYER_NAME, EMAIL_ADDRESS, PATTERN_MESSAGES, PHONE_NUMBER, STRICT, FieldError
from holdfast.web.json import read_json, read_optional_json
from holdfast.web.request import BODY_LIMIT, JSON, Request

_UNKNOWN_NAME = "extra_forbidden"
_NO_SUCH_FIELD = "There is no field with this name."

_MESSAGES = {
    "missing": "This field is required.",
    _UNKNOWN_NAME: _NO_SUCH_FIELD,
    "is_instance_of": "This must be a number.",
    "string_type": "This must be text.",
    "string_unicode": "This text contains a lone surrogate, which is not a character.",
    "string_pattern_mismatch": "This text does not have the required format.",
    "string_too_short": "This must have at least %(min_length)s characters.",
    "string_too_long": "This must have at most %(max_length)s characters.",
    "bool_type": "This must be true or false.",
    "finite_number": "This number is out of range.",
    "greater_than": "This must be greater than %(gt)s.",
    "greater_than_equal": "This must be at least %(ge)s.",
    "less_than_equal": "This must be at most %(le)s.",
    "decimal_max_places": "This must have at most %(decimal_places)s decimals.",
    "dict_type": "This must be an object.",
    "model_type": "This must be an object.",
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


class BodyModel(BaseModel):
    """Names are the domain's in the code and camelCase on the wire; no others are taken."""

    model_config = STRICT

    wire_names: ClassVar[frozenset[str]]
    example: ClassVar[Any]
    """Of a request, for the OpenAPI document; a test sends it."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.wire_names = frozenset(field.alias or name for name, field in cls.model_fields.items())

    def sent(self) -> dict[str, Any]:
        """The fields that were sent, by their names in the code."""
        return {name: getattr(self, name) for name in self.model_fields_set}


M = TypeVar("M", bound=BodyModel)


class Body:
    """Reads the body of an operation. This one takes none, or an empty object."""

    media_types: tuple[str, ...] = (JSON,)
    is_required = False
    model: type[BodyModel] | None = None
    """Shown in the OpenAPI document; None if the operation takes no body."""

    def __init__(self, limit: int = BODY_LIMIT) -> None:
        self.limit = limit

    def json_schema(self) -> dict[str, Any]:
        assert self.model is not None
        return {"$ref": f"#/components/schemas/{component_name(self.model.__name__)}"}

    def example(self) -> Any:
        return None if self.model is None else self.model.example

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> Any:
        """Return what the handler gets. Faults of form are raised, others are added to ``faults``."""
        faults += no_fields(await read_optional_json(request, self.limit))


class ModelBody(Body):
    """A body of one model. An optional one may be left out or empty, and is None then."""

    def __init__(self, model: type[BodyModel], limit: int = BODY_LIMIT, *, optional: bool = False) -> None:
        super().__init__(limit)
        self.model = model
        self.is_required = not optional

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> Any:
        parsed = await (read_json if self.is_required else read_optional_json)(request, self.limit)
        return None if parsed == {} and not self.is_required else self.check(parsed, faults)

    def check(self, parsed: Any, faults: list[Fault]) -> Any:
        assert self.model is not None
        body = validated(self.model, parsed)
        if not isinstance(body, list):
            return body
        faults += body
        return None


NO_BODY = Body()


def component_name(name: str) -> str:
    """Return the name in the OpenAPI document: ``Unit`` for ``UnitDocument``."""
    return name.removesuffix("Document").removesuffix("Body")


def validated(model: type[M], parsed: Any) -> M | list[Fault]:
    """Return the model, or every fault of the parsed body."""
    # Unknown names are sorted out first: pydantic takes ten times as long to report them, and stops at one
    # that is no text.
    unknown = no_fields(parsed, model.wire_names)
    if type(parsed) is not dict:
        return unknown
    if unknown:
        parsed = {name: value for name, value in parsed.items() if name in model.wire_names}
    try:
        body = model.model_validate(parsed)
    except ValidationError as failure:
        return [_fault(error) for error in failure.errors(include_url=False)] + unknown
    return unknown or body


def valid(model: type[M], parsed: Any) -> M:
    body = validated(model, parsed)
    if isinstance(body, list):
        raise InvalidInput(body)
    return body


def no_fields(parsed: Any, except_names: frozenset[str] = frozenset()) -> list[Fault]:
    """Return a fault for each field, but for those of the given names."""
    if type(parsed) is not dict:
        return [Fault("", "The body must be a JSON object.")]
    if except_names.issuperset(parsed):
        return []
    return [Fault(_pointer([name]), _NO_SUCH_FIELD) for name in parsed if name not in except_names]


def _fault(error: ErrorDetails) -> Fault:
    # An unknown name may look like a form.
    names = error["loc"][-1:] if error["type"] == _UNKNOWN_NAME else ()
    place = error["loc"][: len(error["loc"]) - len(names)]
    parts = (part for part in place if not (isinstance(part, str) and _FORM.fullmatch(part)))
    return Fault(_pointer([*parts, *names]), _message(error["type"], error))


def _message(kind: str, error: ErrorDetails) -> AnyMessage:
    context = error.get("ctx", {})
    if isinstance(context.get("error"), FieldError):
        message: AnyMessage = context["error"].message
        return message
    if error["input"] is None and kind != _UNKNOWN_NAME:
        return "This field cannot be null."
    if "pattern" in context:
        return PATTERN_MESSAGES.get(context["pattern"], _MESSAGES[kind])
    if context.get("min_length") == 1:
        return _MESSAGES_OF_ONE[kind]
    parameters = {name: context[name] for name in _PARAMETERS if name in context}
    return Message(_MESSAGES[kind], parameters) if parameters else _MESSAGES[kind]


def _pointer(place: Iterable[int | str]) -> str:
    """RFC 6901; a name that is not text as JSON knows it is shown with escapes."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in place)
    return "".join(f"/{part.encode(errors='backslashreplace').decode()}" for part in parts)


# Pasted text comes with spaces and, where people write from right to left, with invisible marks of direction.
_AT_THE_ENDS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + (
    "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_TRIMMED = BeforeValidator(lambda value: value.strip(_AT_THE_ENDS) if isinstance(value, str) else value)

Name = Annotated[str, StringConstraints(max_length=200, pattern=BUYER_NAME), _TRIMMED]
Email = Annotated[str, StringConstraints(min_length=3, max_length=254, pattern=EMAIL_ADDRESS), _TRIMMED]
Phone = Annotated[str, StringConstraints(max_length=50, pattern=PHONE_NUMBER), _TRIMMED]


class BuyerDetails(BodyModel):
    """Spaces at the ends of all three are dropped."""

    example: ClassVar[Any] = {
        "buyerName": "Sara Al-Harbi",
        "buyerEmail": "sara@example.com",
        "buyerPhone": "+966 50 123 4567",
    }

    buyer_name: Name = Field(description="Printable text with at least two letters.")
    buyer_email: Email = Field(description="An e-mail address.")
    buyer_phone: Phone = Field(
        description="7 to 15 digits of any script, with spaces, hyphens and `()./` among them, and `+` or "
        "`00` in front if you like."
    )

    def buyer(self) -> Buyer:
        return Buyer(self.buyer_name, self.buyer_email, self.buyer_phone)
