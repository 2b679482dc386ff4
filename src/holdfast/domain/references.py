"""Booking references: short, unambiguous to read aloud, never made twice.

A reference is made of the number of a booking, by a permutation that is keyed with the secret of the
installation. So numbers of a sequence give unique references, and without the secret nobody learns from them
how many bookings there are. Bookings are found by their stored reference: those of earlier releases were made
by another permutation. A reference is no secret: alone it opens nothing.
"""

import re
from hashlib import blake2b

SYMBOLS = "2346789FHKMQRWXY"
"""None has a double in print or handwriting (0 O, 1 I L, 5 S, 2 Z, 8 B, 6 G, U V, N M), and of the letters
that rhyme (B C D E G P T V Z, and A J K) at most one is here. Sixteen are four bits each, and a field.
"""

# Frozen for ever, with the rounds below and the secret: others would give old references to new bookings.
_ROUNDS = 8
_FIELD_POLYNOMIAL = 0b10011

_SYMBOLS_OF_DIGITS = str.maketrans("0123456789abcdef", SYMBOLS)
_GROUP = f"[{SYMBOLS}]{{3}}"
_WRITTEN = re.compile(f"{_GROUP}-?{_GROUP}-?{_GROUP}")


def encode_reference(number: int, secret: bytes) -> str:
    """The sequence of numbers ends at 2**32 - 1."""
    scattered = _scatter(number, secret)
    digits = [scattered >> shift & 0xF for shift in range(28, -1, -4)]
    return _grouped(f"{scattered:08x}{_check_digit(digits):x}".translate(_SYMBOLS_OF_DIGITS))


def read_reference(text: str) -> str | None:
    """Return the reference as it is stored. Lower case, spaces around it and missing hyphens are allowed.
    None if it is no reference."""
    text = text.strip()
    # ASCII first: upper() makes plain letters of some that are none, such as the ligature ff.
    if not text.isascii() or not _WRITTEN.fullmatch(text.upper()):
        return None
    symbols = text.upper().replace("-", "")
    *digits, check = map(SYMBOLS.index, symbols)
    return _grouped(symbols) if _check_digit(digits) == check else None


def _grouped(symbols: str) -> str:
    return f"{symbols[:3]}-{symbols[3:6]}-{symbols[6:]}"


def _check_digit(digits: list[int]) -> int:
    """Each place weighs another power of two in the field of 16 elements, the check digit one.

    No two weights are equal and none is zero, so every single wrong digit, every swap of two digits
    wherever they stand, and every pair of equal digits misread alike leaves the sum off.
    """
    total = 0
    for digit in digits:
        total = (total ^ digit) << 1
        total ^= _FIELD_POLYNOMIAL if total > 0xF else 0
    return total


def _scatter(number: int, secret: bytes) -> int:
    """A Feistel network: a permutation whatever its rounds do."""
    left, right = number >> 16, number & 0xFFFF
    for turn in range(_ROUNDS):
        mixed = blake2b(bytes([turn, *right.to_bytes(2)]), digest_size=2, key=secret, person=b"reference")
        left, right = right, left ^ int.from_bytes(mixed.digest())
    return left << 16 | right
