"""Booking references: short, unambiguous to read aloud, never made twice.

A reference encodes the number of a booking. The encoding is a bijection, so numbers of a sequence give
unique references; and it scatters, so that the bookings of one morning are not mistaken for each other. A
reference is no secret: alone it opens nothing.
"""

import re

SYMBOLS = "2346789FHKMQRWXY"
"""None has a double in print or handwriting (0 O, 1 I L, 5 S, 2 Z, 8 B, 6 G, U V, N M), and of the letters
that rhyme (B C D E G P T V Z, and A J K) at most one is here. Sixteen are four bits each, and a field.
"""

NUMBERS = (1, 2**32 - 1)

# Frozen for ever, each of them: another value would give the references of old bookings to new ones.
_ROUND_KEYS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0xD3A2646D)
_FIELD_POLYNOMIAL = 0b10011

_SYMBOLS_OF_DIGITS = str.maketrans("0123456789abcdef", SYMBOLS)
_GROUP = f"[{SYMBOLS}]{{3}}"
_WRITTEN = re.compile(f"{_GROUP}-?{_GROUP}-?{_GROUP}")


def encode_reference(number: int) -> str:
    least, most = NUMBERS
    if not least <= number <= most:
        raise ValueError(f"There is no reference for the number {number}.")
    scattered = _scatter(number)
    digits = [scattered >> shift & 0xF for shift in range(28, -1, -4)]
    symbols = f"{scattered:08x}{_check_digit(digits):x}".translate(_SYMBOLS_OF_DIGITS)
    return f"{symbols[:3]}-{symbols[3:6]}-{symbols[6:]}"


def decode_reference(reference: str) -> int | None:
    """Return None if it is no reference. Lower case, spaces around it and missing hyphens are allowed."""
    text = reference.strip()
    # ASCII first: upper() makes plain letters of some that are none, such as the ligature ff.
    if not text.isascii() or not _WRITTEN.fullmatch(text.upper()):
        return None
    *digits, check = (SYMBOLS.index(symbol) for symbol in text.upper().replace("-", ""))
    if _check_digit(digits) != check:
        return None
    scattered = 0
    for digit in digits:
        scattered = scattered << 4 | digit
    return _gather(scattered) or None


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


def _scatter(number: int) -> int:
    """A Feistel network: a permutation whatever its rounds do."""
    left, right = number >> 16, number & 0xFFFF
    for key in _ROUND_KEYS:
        left, right = right, left ^ _mix(right, key)
    return left << 16 | right


def _gather(scattered: int) -> int:
    left, right = divmod(scattered, 1 << 16)
    for key in reversed(_ROUND_KEYS):
        left, right = right ^ _mix(left, key), left
    return left << 16 | right


def _mix(half: int, key: int) -> int:
    product = (half ^ key >> 16) * key
    return (product >> 13 ^ product >> 25) & 0xFFFF
