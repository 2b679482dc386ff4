"""Encryption of secrets, with keys from the environment or a file beside the embedded database."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from holdfast.domain.errors import SecretsUnreadable
from holdfast.settings import Settings, WrongSetting, parse_encryption_keys
from holdfast.storage.embedded.files import write_once
from holdfast.storage.errors import BackupError

NAME = "HOLDFAST_ENCRYPTION_KEYS"
FILE = "encryption-keys"


def load_encryption_keys(settings: Settings) -> tuple[str, ...]:
    """Return the keys of the settings, or those in the data directory, which are made when first needed."""
    if settings.encryption_keys:
        return settings.encryption_keys
    if settings.database_url is not None:
        raise WrongSetting(
            f"{NAME} is not set, but must be where HOLDFAST_DATABASE_URL is,"
            " to encrypt the secrets of endpoints."
        )
    path = settings.data_dir / FILE
    if not path.exists():
        write_once(path, f"{new_encryption_key()}\n")
    return _read(path)


def store_keys(data_dir: Path, keys: Sequence[str]) -> None:
    """Store the keys in a data directory that has none; existing keys are never replaced."""
    check_same_keys(data_dir, keys)
    if not (data_dir / FILE).exists():
        write_once(data_dir / FILE, "".join(f"{key}\n" for key in keys))


def check_same_keys(data_dir: Path, keys: Sequence[str]) -> None:
    path = data_dir / FILE
    if path.exists() and not set(keys) <= set(_read(path)):
        raise BackupError(
            f"{path} has other encryption keys than the backup; name a new directory with --data."
        )


def check_keys(settings: Settings, sealed: Sequence[str]) -> None:
    """Raise BackupError unless the keys that are there open at least one of the secrets."""
    path, keys = settings.data_dir / FILE, settings.encryption_keys
    if not keys and settings.database_url is None and path.exists():
        keys = _read(path)
    for value in sealed if keys else ():
        with suppress(SecretsUnreadable):
            SecretBox(keys).open(value.encode())
            return
    if sealed:
        raise BackupError(
            f"The backup has no encryption keys, and yours do not open its secrets: set {NAME} to the"
            " keys of what was backed up."
        )


def new_encryption_key() -> str:
    return Fernet.generate_key().decode()


def _read(path: Path) -> tuple[str, ...]:
    try:
        keys = parse_encryption_keys(",".join(path.read_text().split()))
    except ValueError:
        keys = ()
    if not keys:
        raise WrongSetting(
            f"{path} is '…', but must be a file with a key of 32 bytes in URL-safe base64 on each line."
        )
    return keys


class SecretBox:
    """Encrypts with the first key, and decrypts with any of them."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def seal(self, text: str) -> bytes:
        return self._fernet.encrypt(text.encode())

    def open(self, sealed: bytes) -> str:
        try:
            return self._fernet.decrypt(sealed).decode()
        except InvalidToken:
            raise SecretsUnreadable from None
