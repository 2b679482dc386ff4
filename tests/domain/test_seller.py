"""The numbers and the logo of a seller's profile."""

import struct
import zlib
from base64 import b64encode

import pytest

from holdfast.domain.errors import FieldError
from holdfast.domain.seller import LARGEST_LOGO_BYTES, Logo, Seller, effective, read_logo, read_number


def png(width: int = 3, height: int = 2, profile: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        if kind == b"iCCP" and not data:
            return b""
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress(b"".join(b"\x00" + b"\x0b\x66\x56" * width for _ in range(height)))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"iCCP", profile)
        + chunk(b"IDAT", rows)
        + chunk(b"IEND", b"")
    )


def logo_of(content: bytes) -> Logo:
    return read_logo("data:image/png;base64," + b64encode(content).decode())


JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xff\xc0\x00\x0b\x08\x00\x50\x00\xa0\x01\x01\x11\x00\xff\xd9"


WITH_A_HIDDEN_SIZE = JPEG.replace(
    b"\xff\xc0\x00\x0b\x08\x00",
    b"\xff\xfe\x00\x0bx\xff\xc0\x00\x11\x08\x00\x10\x06\xff\xc0\x00\x0b\x08\x10",
)
"""Behind a comment that ends like a small size."""


def test_an_iban_with_one_wrong_character_is_none() -> None:
    for right in ("SA0380000000608010167519", "GB29NWBK60161331926819"):
        assert read_number("iban", right) == right
    for wrong in ("SA0380000000608010167518", "SA0380000000608010167591", "SA3080000000608010167519"):
        with pytest.raises(FieldError):
            read_number("iban", wrong)


def test_a_field_of_the_project_takes_the_place_of_the_general_one() -> None:
    profiles = {
        None: Seller("Palm", phone="920001234"),
        "court": Seller("Palm Court"),
        "other": Seller("Other"),
    }
    assert effective(profiles, "court") == Seller("Palm Court", phone="920001234")
    assert effective(profiles, "unknown") == effective(profiles, None) == profiles[None]
    assert effective({}, "court") == Seller()


def test_an_iban_is_shown_in_groups_of_four() -> None:
    assert Seller(iban="SA0380000000608010167519").spaced_iban == "SA03 8000 0000 6080 1016 7519"


def test_a_png_and_a_jpeg_are_recognised() -> None:
    for content, ending in ((png(), ".png"), (png(profile=b"sRGB\x00\x00" * 400), ".png"), (JPEG, ".jpeg")):
        logo = logo_of(content)
        assert (logo[0].endswith(ending), logo[1]) == (True, content)
        assert logo == logo_of(content)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"<svg/>", b"GIF89a", png()[:8], png()[:20], JPEG[:5],
        b"\xff\xd8\xff" + b"\xff" * 40, b"\xff\xd8\xff\xd9",
        png(2001, 1), png(1, 2001), png(0, 1), png() + b"\x00" * LARGEST_LOGO_BYTES,
        png()[:-1], JPEG[:-1], png(profile=b"\x00" * 17_000), WITH_A_HIDDEN_SIZE,
    ],
)  # fmt: skip
def test_what_is_no_picture_or_too_large_is_no_logo(content: bytes) -> None:
    with pytest.raises(FieldError):
        logo_of(content)
