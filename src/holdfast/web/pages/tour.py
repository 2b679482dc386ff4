"""The first page of a demo: five things to try, in the visitor's language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from holdfast.web.pages.i18n import DIRECTIONS, accepted_language
from holdfast.web.pages.templates import QrCode, qr_code
from holdfast.web.request import Request


class Tour(NamedTuple):
    """The subjects of a demo's first page, and their addresses."""

    public_url: str
    project_path: str
    """For buyers."""
    board_path: str
    """For staff."""
    email: str
    receiver: str
    price_path: str
    """Of a unit whose price may be changed."""
    price_body: Mapping[str, Any]
    picture: str
    """A static file."""

    @property
    def project_url(self) -> str:
        return self.public_url + self.project_path

    @property
    def is_for_this_machine_alone(self) -> bool:
        """Nobody comes to such an address from a phone."""
        host = urlsplit(self.public_url).hostname or "localhost"
        try:
            own = ip_address(host)
        except ValueError:
            return host == "localhost"
        return own.is_loopback or own.is_unspecified

    @property
    def code_for_phones(self) -> QrCode | None:
        return None if self.is_for_this_machine_alone else qr_code(self.project_url)

    @property
    def price_command(self) -> str:
        return (
            f"curl -X PATCH {self.public_url}{self.price_path} \\\n"
            '  -H "Authorization: Bearer $KEY" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  -d '{json.dumps(self.price_body)}'"
        )

    @property
    def simulate_command(self) -> str:
        return ".venv/bin/holdfast simulate --buyers 20"


def language_code(request: Request) -> str:
    """Return the language that a link names, or that the browser is set to."""
    chosen = next((value for name, value in request.query_items() if name == "lang"), None)
    if chosen in DIRECTIONS:
        return str(chosen)
    return accepted_language(request.header(b"accept-language"))
