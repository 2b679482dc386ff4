"""How often a process looks for garbage."""

import gc

# A batch makes thousands of short-lived objects, hardly one of them in a cycle.
_COLLECT_SELDOM = (100_000, 20, 20)


def collect_seldom() -> None:
    """For a process that has loaded what it needs: that stays for good, and need not be looked at again."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_SELDOM)
