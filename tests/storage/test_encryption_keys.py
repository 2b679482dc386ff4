"""Secrets at rest: where the keys come from, and what a wrong one is told."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.domain.errors import SecretsUnreadable
from holdfast.settings import Settings, WrongSetting
from holdfast.storage.errors import BackupError
from holdfast.storage.secrets import FILE, SecretBox, load_encryption_keys, new_encryption_key, store_keys

SECRET = "hfs_a-secret"


def test_named_keys_are_used_and_none_is_made(tmp_path: Path) -> None:
    keys = (new_encryption_key(), new_encryption_key())
    assert load_encryption_keys(Settings(data_dir=tmp_path, encryption_keys=keys)) == keys
    assert list(tmp_path.iterdir()) == []
    # A file may have many, too.
    (tmp_path / FILE).write_text(f"\n{keys[0]}\n\n {keys[1]}\r\n")
    assert load_encryption_keys(Settings(data_dir=tmp_path)) == keys


def test_an_embedded_installation_makes_its_key_once_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    (key,) = load_encryption_keys(settings)
    path = tmp_path / "data" / FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == key + "\n"
    assert load_encryption_keys(settings) == (key,)
    assert list(path.parent.iterdir()) == [path]
    SecretBox([key])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
def test_a_key_that_root_makes_is_for_the_owner_of_the_data_directory(tmp_path: Path) -> None:
    os.chown(tmp_path, 12345, 12345)
    load_encryption_keys(Settings(data_dir=tmp_path))
    status = (tmp_path / FILE).stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (12345, 12345, 0o600)


def test_processes_that_start_together_agree_on_one_key(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: load_encryption_keys(settings), range(32)))
    assert len(found) == 1
    assert list(tmp_path.iterdir()) == [tmp_path / FILE]


@pytest.mark.parametrize("content", ["", "\n \n", "hunter2", "hunter2\n" + "A" * 43 + "=", "A" * 44, "\xff"])
def test_a_file_that_is_not_keys_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / FILE
    path.write_text(content, "latin-1")
    with pytest.raises(WrongSetting) as refused:
        load_encryption_keys(Settings(data_dir=tmp_path))
    # And not of a setting that nobody has set.
    assert str(refused.value).startswith(f"{path} is ")
    assert ("hunter2" in str(refused.value), "A" * 10 in str(refused.value)) == (False, False)
    assert path.read_text("latin-1") == content


def test_a_backup_brings_its_keys_but_replaces_none(tmp_path: Path) -> None:
    first, second, other = (new_encryption_key() for _ in range(3))
    for keys in ([first, second], [second]):
        store_keys(tmp_path, keys)
        assert load_encryption_keys(Settings(data_dir=tmp_path)) == (first, second)
    with pytest.raises(BackupError, match="has other encryption keys than the backup"):
        store_keys(tmp_path, [first, other])
    assert load_encryption_keys(Settings(data_dir=tmp_path)) == (first, second)


def test_with_a_database_of_ones_own_the_keys_must_be_named(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, database_url="postgresql://h/db")
    with pytest.raises(WrongSetting) as refused:
        load_encryption_keys(settings)
    sentence = str(refused.value)
    assert sentence.startswith("HOLDFAST_ENCRYPTION_KEYS is ")
    assert "HOLDFAST_DATABASE_URL" in sentence
    assert sentence.count(".") == 1
    assert list(tmp_path.iterdir()) == []


def test_what_one_key_sealed_every_box_that_has_it_opens_and_no_other() -> None:
    old, new = new_encryption_key(), new_encryption_key()
    box = SecretBox([old])
    sealed = box.seal(SECRET)
    assert SECRET.encode() not in sealed
    assert sealed != box.seal(SECRET)
    assert SecretBox([new, old]).open(sealed) == SECRET
    assert box.open(SecretBox([old, new]).seal(SECRET)) == SECRET
    tampered = bytearray(sealed)
    tampered[-5] ^= 1
    by_another = SecretBox([new, old]).seal(SECRET)
    for unreadable in (by_another, bytes(tampered), b"", b"x", b"\xff\x00", SECRET.encode()):
        with pytest.raises(SecretsUnreadable):
            box.open(unreadable)
