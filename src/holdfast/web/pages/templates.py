"""The Jinja environment of all pages, images and files of units, and QR codes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from holdfast.domain.message import AnyMessage
from holdfast.domain.spelling import format_timestamp
from holdfast.domain.unit import Media
from holdfast.web.documents.sections import terms_in_full
from holdfast.web.pages.i18n import SOURCE, Language, in_language, translate, translations

WEB = Path(__file__).parent.parent
STATIC = WEB / "static"

_WRITTEN = (
    "area", "duration", "milliseconds", "money", "number", "percent", "plain", "short_money",
)  # fmt: skip
_TIMES = ("date", "date_time", "full_date_time", "time")


@cache
def templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "_": _gettext,
        "gettext": _gettext,
        "ngettext": _ngettext,
        "pgettext": _pgettext,
    }
    environment.globals["static"] = cache(static_address)
    environment.globals["terms_in_full"] = terms_in_full
    environment.filters |= {name: _written(name) for name in _WRITTEN}
    environment.filters |= {name: _time(name) for name in _TIMES}
    environment.filters["ago"] = _ago
    environment.filters["own"] = _own
    environment.filters["translate"] = _translate
    environment.filters["booking_status"] = _booking_status
    return environment


def static_address(name: str) -> str:
    """The address changes with the file, so a browser never shows an old one."""
    return f"/static/{name}?v={digest((STATIC / name).read_bytes())}"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@pass_context
def _gettext(context: Context, text: str, **values: Any) -> Markup:
    """Values are escaped, the words are ours."""
    found = Markup(translations(_language(context).code).gettext(text))  # noqa: S704
    return found % values if values else found


@pass_context
def _ngettext(context: Context, one: str, many: str, num: int, **values: Any) -> Markup:
    language = _language(context)
    found = Markup(translations(language.code).ngettext(one, many, num))  # noqa: S704
    return found % {"num": language.number(num), **values}


@pass_context
def _pgettext(context: Context, text_context: str, text: str) -> str:
    return str(translations(_language(context).code).pgettext(text_context, text))


@pass_context
def _translate(context: Context, message: AnyMessage) -> str:
    return translate(message, _language(context))


@pass_context
def _booking_status(context: Context, status: str) -> str:
    """Name a status as errors do: in some languages a booking is not "sold" in the way a unit is."""
    code = _language(context).code
    if code == SOURCE:
        return str(status).replace("-", " ").capitalize()
    return str(translations(code).pgettext("booking_status", str(status)))


def _written(name: str) -> Callable[..., str]:
    @pass_context
    def write(context: Context, value: Any) -> str:
        return str(getattr(_language(context), name)(value))

    return write


def _time(name: str) -> Callable[..., Markup]:
    @pass_context
    def write(context: Context, at: datetime) -> Markup:
        return _time_element(at, getattr(_language(context), name)(at))

    return write


@pass_context
def _ago(context: Context, at: datetime) -> Markup:
    language = _language(context)
    shown = language.ago(at, context["now"])
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        format_timestamp(at), language.full_date_time(at), shown
    )


@pass_context
def _own(context: Context, text: str) -> str:
    """Return the part of a text in two languages that is in this one."""
    return in_language(text, _language(context).code)


def _time_element(at: datetime, shown: str) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(format_timestamp(at), shown)


def _language(context: Context) -> Language:
    language: Language = context["language"]
    return language


# Images and files of units, as pages show them.

_WEB = ("http:", "https:")


class Medium(NamedTuple):
    url: str
    name: str

    @property
    def is_shown(self) -> bool:
        """Whether a page may load it: the policy of our pages lets in nothing that came over plain http."""
        return self.url.lower().startswith("https:") or self.is_own

    @property
    def is_own(self) -> bool:
        """Whether it is on this host."""
        return self.url.startswith("/")

    @property
    def is_linked(self) -> bool:
        return self.is_own or self.url.lower().startswith(_WEB)


def media(sent: Iterable[Media]) -> list[Medium]:
    return [Medium(one, _file_name(one)) if isinstance(one, str) else _named(one) for one in sent]


def on_this_host(medium: Medium, public_url: str) -> Medium:
    """Make a URL below our own address a path, which works under every name of the host."""
    base = public_url.rstrip("/") + "/"
    is_own = len(base) > 1 and medium.url.startswith(base)
    return medium._replace(url="/" + medium.url[len(base) :].lstrip("/")) if is_own else medium


def _named(one: Media) -> Medium:
    assert not isinstance(one, str)
    url = one["url"] or ""
    return Medium(url, one.get("name") or _file_name(url))


def _file_name(url: str) -> str:
    """Return the last part of the path."""
    try:
        last = unquote(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        return url
    return last if last.isprintable() and last.strip() else url


# QR codes as one path of a drawing.


class QrCode(NamedTuple):
    size: int
    """The width of the drawing in modules, with the white border that readers need."""
    path: str


def qr_code(text: str) -> QrCode:
    """Draw each row of dark modules as its runs."""
    rows = [bytes(row) for row in segno.make(text, error="m").matrix_iter(border=4)]
    runs = [
        f"M{start} {at}h{end - start}v1h-{end - start}z"
        for at, row in enumerate(rows)
        for start, end in _runs(row)
    ]
    return QrCode(len(rows), "".join(runs))


def _runs(row: bytes) -> list[tuple[int, int]]:
    edges = [at for at in range(len(row) + 1) if _is_dark(row, at) != _is_dark(row, at - 1)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _is_dark(row: bytes, at: int) -> bool:
    return 0 <= at < len(row) and bool(row[at])
