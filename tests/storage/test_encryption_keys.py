"""Secrets at rest: where the keys come from, and what a wrong one is told."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.domain.errors import SecretsUnreadable
from holdfast.settings import Settings, WrongSetting
from holdfast.storage.secrets import FILE, SecretBox, load_encryption_keys, new_encryption_key

SECRET = "hfs_a-secret"


def test_named_keys_are_used_and_none_is_made(tmp_path: Path) -> None:
    keys = (new_encryption_key(), new_encryption_key())
    assert load_encryption_keys(Settings(data_dir=tmp_path, encryption_keys=keys)) == keys
    assert list(tmp_path.iterdir()) == []


def test_an_embedded_installation_makes_its_key_once_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    (key,) = load_encryption_keys(settings)
    path = tmp_path / "data" / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == key + "\n"
    assert load_encryption_keys(settings) == (key,)
    assert list(path.parent.iterdir()) == [path]
    SecretBox([key])


def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: load_encryption_keys(settings), range(32)))
    assert len(found) == 1
    assert list(tmp_path.iterdir()) == [tmp_path / FILE]


def test_a_file_may_have_many_keys_and_the_first_seals(tmp_path: Path) -> None:
    old, new = new_encryption_key(), new_encryption_key()
    (tmp_path / FILE).write_text(f"\n{new}\n\n {old}\r\n")
    assert load_encryption_keys(Settings(data_dir=tmp_path)) == (new, old)


@pytest.mark.parametrize("content", ["", "\n \n", "hunter2", "hunter2\n" + "A" * 43 + "=", "A" * 44])
def test_a_file_that_is_not_keys_is_refused_and_neither_shown_nor_replaced(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / FILE
    path.write_text(content)
    with pytest.raises(WrongSetting) as refused:
        load_encryption_keys(Settings(data_dir=tmp_path))
    assert "hunter2" not in str(refused.value)
    assert "A" * 10 not in str(refused.value)
    assert path.read_text() == content


@pytest.mark.parametrize("content", [b"", b"hunter2", b"\xff\xfe\x00"])
def test_who_has_spoilt_the_file_is_told_of_the_file(tmp_path: Path, content: bytes) -> None:
    """And not of a setting that they have never set."""
    path = tmp_path / FILE
    path.write_bytes(content)
    with pytest.raises(WrongSetting) as refused:
        load_encryption_keys(Settings(data_dir=tmp_path))
    assert str(refused.value).startswith(f"{path} is ")


def test_with_a_database_of_ones_own_the_keys_must_be_named(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="postgresql://h/db")
    with pytest.raises(WrongSetting) as refused:
        load_encryption_keys(settings)
    sentence = str(refused.value)
    assert sentence.startswith("HOLDFAST_ENCRYPTION_KEYS is ")
    assert "HOLDFAST_DATABASE_URL" in sentence
    assert sentence.count(".") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_one_key_sealed_every_box_that_has_it_opens() -> None:
    old, new = new_encryption_key(), new_encryption_key()
    sealed = SecretBox([old]).seal(SECRET)
    assert SECRET.encode() not in sealed
    assert SecretBox([new, old]).open(sealed) == SECRET
    assert SecretBox([old]).open(SecretBox([old, new]).seal(SECRET)) == SECRET
    with pytest.raises(SecretsUnreadable):
        SecretBox([old]).open(SecretBox([new, old]).seal(SECRET))


@pytest.mark.parametrize("sealed", [b"", b"x", b"\xff\x00", SECRET.encode()])
def test_what_was_never_sealed_cannot_be_opened(sealed: bytes) -> None:
    with pytest.raises(SecretsUnreadable):
        SecretBox([new_encryption_key()]).open(sealed)


def test_the_same_secret_is_sealed_differently_each_time() -> None:
    box = SecretBox([new_encryption_key()])
    assert box.seal(SECRET) != box.seal(SECRET)


def test_a_sealed_secret_that_was_tampered_with_cannot_be_opened() -> None:
    box = SecretBox([new_encryption_key()])
    sealed = bytearray(box.seal(SECRET))
    sealed[-5] ^= 1
    with pytest.raises(SecretsUnreadable):
        box.open(bytes(sealed))
