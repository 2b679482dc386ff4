"""What the parts about selling share: one database with units to change and units to hold."""

from benchmarks.arena import Arena
from benchmarks.contestants import Ground

PUT_UNITS = 10_000
# Buyers come through a proxy on this machine, which names the address of each; all limits are as shipped.
BEHIND_A_PROXY = {"HOLDFAST_TRUSTED_PROXIES": "127.0.0.1/32"}


def ground(arena: Arena) -> Ground:
    return arena.ground("holdfast", PUT_UNITS + (50_000 if arena.quick else 250_000))


def units_to_hold(arena: Arena) -> range:
    """The units after those that are changed: terms are locked while a unit is held."""
    return range(PUT_UNITS + 1, ground(arena).units + 1)
