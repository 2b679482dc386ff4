"""The templates of all pages, and what they may call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from holdfast.domain.spelling import moment_text
from holdfast.web.documents.texts import terms_in_full
from holdfast.web.html.bilingual import in_language
from holdfast.web.html.language import Language
from holdfast.web.html.words import words

WEB = Path(__file__).parent.parent
STATIC = WEB / "static"

_WRITTEN = (
    "area", "duration", "milliseconds", "money", "number", "percent", "plain", "short_money",
)  # fmt: skip
_TIMES = ("date", "moment", "moment_in_full", "time")


@cache
def templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"_": _gettext, "gettext": _gettext, "ngettext": _ngettext}
    environment.globals["static"] = cache(static_address)
    environment.globals["terms_in_full"] = terms_in_full
    environment.filters |= {name: _written(name) for name in _WRITTEN}
    environment.filters |= {name: _time(name) for name in _TIMES}
    environment.filters["ago"] = _ago
    environment.filters["own"] = _own
    return environment


def static_address(name: str) -> str:
    """The address changes with the file, so a browser never shows an old one."""
    return f"/static/{name}?v={digest((STATIC / name).read_bytes())}"


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@pass_context
def _gettext(context: Context, text: str, **values: Any) -> Markup:
    """Values are escaped, the words are ours."""
    found = Markup(words(_language(context).code).gettext(text))  # noqa: S704
    return found % values if values else found


@pass_context
def _ngettext(context: Context, one: str, many: str, num: int, **values: Any) -> Markup:
    language = _language(context)
    found = Markup(words(language.code).ngettext(one, many, num))  # noqa: S704
    return found % {"num": language.number(num), **values}


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
        moment_text(at), language.moment_in_full(at), shown
    )


@pass_context
def _own(context: Context, text: str) -> str:
    """Of a text in two languages the part in this one."""
    return in_language(text, _language(context).code)


def _time_element(at: datetime, shown: str) -> Markup:
    return Markup('<time datetime="{}">{}</time>').format(moment_text(at), shown)


def _language(context: Context) -> Language:
    language: Language = context["language"]
    return language
