"""What the parts about selling share: one database with units to change and units to hold."""

from benchmarks.arena import Arena
from benchmarks.contestants import Ground

UNITS, QUICK_UNITS = 100_000, 50_000
"""To change, and as many again to hold: whoever has fewer units has more of them at hand."""
# Buyers come through a proxy on this machine, which names the address of each; all limits are as shipped.
BEHIND_A_PROXY = {"HOLDFAST_TRUSTED_PROXIES": "127.0.0.1/32"}


def ground(arena: Arena) -> Ground:
    return arena.ground("holdfast", 2 * units_to_change(arena))


def units_to_change(arena: Arena) -> int:
    return QUICK_UNITS if arena.quick else UNITS


def units_to_hold(arena: Arena) -> range:
    """The units after those that are changed: terms are locked while a unit is held."""
    return range(units_to_change(arena) + 1, ground(arena).units + 1)
