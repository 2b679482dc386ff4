"""Processes whose own clock is off, while that of the database is right."""

import os
from pathlib import Path

# Python imports it before anything else, in every process that inherits the environment.
_SITE = """
import datetime, time

OFF = {seconds}
_time, _time_ns, _real = time.time, time.time_ns, datetime.datetime


class _Meta(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, _real)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, _real)


class _Shifted(_real, metaclass=_Meta):
    __slots__ = ()

    def __new__(cls, *arguments, **options):
        return _real(*arguments, **options)

    @classmethod
    def now(cls, tz=None):
        return _real.now(tz) + datetime.timedelta(seconds=OFF)

    @classmethod
    def utcnow(cls):
        return _real.utcnow() + datetime.timedelta(seconds=OFF)


_Shifted.__name__ = _Shifted.__qualname__ = "datetime"
_Shifted.__module__ = "datetime"
datetime.datetime = _Shifted
time.time = lambda: _time() + OFF
time.time_ns = lambda: _time_ns() + OFF * 1_000_000_000
"""


def wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    """The environment of processes whose clock is this far ahead of the right one."""
    site = folder / "wrong-clock"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_SITE.format(seconds=seconds))
    inherited = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": os.pathsep.join([str(site), *([inherited] if inherited else [])])}
