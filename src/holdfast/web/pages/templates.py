"""The Jinja environment of all pages, images and files of units, and QR codes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import segno
from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from holdfast.domain.errors import AnyMessage
from holdfast.domain.unit import Media
from holdfast.domain.wire_format import camel_case, format_timestamp
from holdfast.web.documents.content import terms_in_full
from holdfast.web.pages.i18n import SOURCE, Language, in_language, translate, translations

WEB = Path(__file__).parent.parent
STATIC = WEB / "static"

_LANGUAGE_FILTERS = (
    "area", "duration", "milliseconds", "money", "number", "percent", "plain", "short_money",
)  # fmt: skip
_TIME_FILTERS = ("date", "date_time", "full_date_time", "time")


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
        "ngettext": _ngettext,
        "pgettext": _pgettext,
        "static": cache(static_address),
        "terms_in_full": terms_in_full,
    }
    environment.filters |= {name: _language_filter(name) for name in (*_LANGUAGE_FILTERS, *_TIME_FILTERS)}
    environment.filters |= {
        "ago": _ago,
        "booking_status": _booking_status,
        "camel_case": camel_case,
        "code_spans": code_spans,
        "own": _own,
        "translate": _translate,
    }
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


def _language_filter(name: str) -> Callable[..., str]:
    @pass_context
    def write(context: Context, value: Any) -> str:
        text = str(getattr(_language(context), name)(value))
        if name not in _TIME_FILTERS:
            return text
        return Markup('<time datetime="{}">{}</time>').format(format_timestamp(value), text)

    return write


@pass_context
def _ago(context: Context, at: datetime) -> Markup:
    language = _language(context)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        format_timestamp(at), language.full_date_time(at), language.ago(at, context["now"])
    )


@pass_context
def _own(context: Context, text: str) -> str:
    """Return the part of a text in two languages that is in this one."""
    return in_language(text, _language(context).code)


def code_spans(text: str) -> Markup:
    """Mark text between backticks as code."""
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(text.split("`"))
    )


def _language(context: Context) -> Language:
    language: Language = context["language"]
    return language


# Images and files of units, as pages show them.


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
        return self.is_own or self.url.lower().startswith(("http:", "https:"))


def list_media(sent: Iterable[Media], public_url: str) -> list[Medium]:
    """Make a URL below our own address a path, which works under every name of the host."""
    base = public_url.rstrip("/") + "/"
    media = []
    for one in sent:
        url, name = (one, None) if isinstance(one, str) else (one["url"] or "", one.get("name"))
        is_own = len(base) > 1 and url.startswith(base)
        path = "/" + url[len(base) :].lstrip("/")
        media.append(Medium(path if is_own else url, name or _file_name(url)))
    return media


def _file_name(url: str) -> str:
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
    rows = list(segno.make(text, error="m").matrix_iter(border=4))
    path = ""
    for y, row in enumerate(rows):
        x = 0
        for is_dark, run in groupby(row):
            width = len(list(run))
            path += f"M{x} {y}h{width}v1h-{width}z" if is_dark else ""
            x += width
    return QrCode(len(rows), path)
