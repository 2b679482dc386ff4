"""Secrets at rest: encrypted with the first key of the installation, readable with any of them."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from holdfast.domain.errors import SecretsUnreadable


class SecretBox:
    def __init__(self, keys: Sequence[str]) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def seal(self, text: str) -> bytes:
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken:
            raise SecretsUnreadable from None
