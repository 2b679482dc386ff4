"""The first page of a demo: five things to try, in the visitor's language."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from holdfast.web.pages.templates import QrCode, qr_code


class Tour(NamedTuple):
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
    def code_for_phones(self) -> QrCode | None:
        """The project's address; None where only this machine can open it."""
        host = urlsplit(self.public_url).hostname or "localhost"
        try:
            address = ip_address(host)
            is_local = address.is_loopback or address.is_unspecified
        except ValueError:
            is_local = host == "localhost"
        return None if is_local else qr_code(self.public_url + self.project_path)

    @property
    def network_command(self) -> str:
        port = urlsplit(self.public_url).port or 80
        return (
            f'HOLDFAST_PUBLIC_URL=http://192.168.1.20:{port} make serve ARGS="--host 0.0.0.0 --port {port}"'
        )

    @property
    def price_command(self) -> str:
        return (
            f"curl -X PATCH {self.public_url}{self.price_path} \\\n"
            '  -H "Authorization: Bearer $KEY" \\\n'
            '  -H "Content-Type: application/json" \\\n'
            f"  -d '{json.dumps(self.price_body)}'"
        )
