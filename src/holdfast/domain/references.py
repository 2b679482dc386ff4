"""Booking references: short, unambiguous to read aloud, never made twice.

A reference is the number of a booking in other clothes. The way from number to reference is a
bijection, so a sequence that never gives a number twice is all it takes; and it scatters, so that the
bookings of one morning are not mistaken for each other. It is no secret: alone it opens nothing.
"""

import re

SYMBOLS = "2346789FHKMQRWXY"
"""None has a double in print or handwriting (0 O, 1 I L, 5 S, 2 Z, 8 B, 6 G, U V, N M), and of the letters
that rhyme (B C D E G P T V Z, and A J K) at most one is here. Sixteen are four bits each, and a field.
"""

NUMBERS = (1, 2**32 - 1)

# Frozen for ever, each of them: another value would give the references of old bookings to new ones.
_ROUND_KEYS = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F, 0x165667B1, 0xD3A2646D)
_ROUNDS = tuple((key, key >> 16) for key in _ROUND_KEYS)
_FIELD_POLYNOMIAL = 0b10011

_GROUP = f"[{SYMBOLS}]{{3}}"
_WRITTEN = re.compile(f"{_GROUP}-?{_GROUP}-?{_GROUP}")


def encode_reference(number: int) -> str:
    least, most = NUMBERS
    if not least <= number <= most:
        raise ValueError(f"There is no reference for the number {number}.")
    first, second, third, fourth = _scatter(number).to_bytes(4)
    check = _CHECKS[0][first] ^ _CHECKS[1][second] ^ _CHECKS[2][third] ^ _CHECKS[3][fourth]
    symbols = _PAIRS[first] + _PAIRS[second] + _PAIRS[third] + _PAIRS[fourth] + SYMBOLS[check]
    return f"{symbols[:3]}-{symbols[3:6]}-{symbols[6:]}"


def decode_reference(reference: str) -> int | None:
    """None for whatever is no reference. Lower case, spaces around it and left-out hyphens are fine."""
    text = reference.strip()
    # ASCII first: upper() makes plain letters of some that are none, such as the ligature ff.
    if not text.isascii() or not _WRITTEN.fullmatch(text.upper()):
        return None
    *digits, check = (SYMBOLS.index(symbol) for symbol in text.upper().replace("-", ""))
    if _check_digit(digits) != check:
        return None
    return (
        _gather(sum(digit << shift for digit, shift in zip(digits, range(28, -1, -4), strict=True))) or None
    )


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
    for key, high in _ROUNDS:
        # As _mix does, written out: every hold makes a reference.
        product = (right ^ high) * key
        left, right = right, left ^ (product >> 13 ^ product >> 25) & 0xFFFF
    return left << 16 | right


def _gather(scattered: int) -> int:
    left, right = divmod(scattered, 1 << 16)
    for key in reversed(_ROUND_KEYS):
        left, right = right ^ _mix(left, key), left
    return left << 16 | right


def _mix(half: int, key: int) -> int:
    product = (half ^ key >> 16) * key
    return (product >> 13 ^ product >> 25) & 0xFFFF


# Every hold makes a reference, so it is put together from bytes: each byte is two symbols, and what it adds
# to the check digit does not depend on the others.
_PAIRS = [first + second for first in SYMBOLS for second in SYMBOLS]
_CHECKS = [
    [_check_digit([0] * before + [*divmod(byte, 16)] + [0] * (6 - before)) for byte in range(256)]
    for before in (0, 2, 4, 6)
]
