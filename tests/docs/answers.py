"""Holds the answer that a document shows against the one that came.

What differs at each run (ids, times, keys, secrets, tokens, references, cursors, request ids) must be of the
same kind, and one value wherever the document shows one value. Signatures, times and how long something took
need only be of the same kind. ``…`` in an object stands for members that are not shown.
"""

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from holdfast.domain.references import SYMBOLS
from tests.docs.documents import Block

ELIDED = "…"
CURSORS = ("/nextCursor", "/after", "/upTo")
DURATION = "Ms"
_GROUP = f"[{SYMBOLS}]{{3}}"
_VARYING = re.compile(
    r"(?P<id>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"
    r"|(?P<stamp>\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})? UTC)"
    r"|(?P<clock>\b\d\d:\d\d:\d\d\b)"
    r"|(?P<took>\b\d+(?:\.\d+)? ms\b)"
    r"|(?P<key>\bhfk_[0-9A-Za-z]{4,42}\b)"
    r"|(?P<ref>\bU-\d{6,}\b)"
    rf"|(?P<reference>\b{_GROUP}-{_GROUP}-{_GROUP}\b)"
    r"|(?P<token>\bhft_[\w-]{32}(?![\w-]))"
    r"|(?P<secret>\bhfs_[\w-]{43}(?![\w-]))"
    r"|(?P<request>\b[0-9a-f]{32}\b)"
    r"|(?P<signature>\bsha256=[0-9a-f]{64}\b)"
    r"|(?P<timestamp>\b1[789]\d{8}\b)"
)
# Two of these may be alike in one run and differ in the next.
_OF_ITS_KIND = ("signature", "timestamp", "stamp", "clock", "took")


class Answers:
    def __init__(self) -> None:
        self.came: dict[str, str] = {}
        """What came for each varying value that was shown."""
        self._shown: dict[str, str] = {}

    def differences(self, shown: Block, output: str) -> list[str]:
        if shown.language == "http":
            return list(self._http(shown.text, output))
        if shown.language == "json":
            return list(self._json("", _shown_json(shown.text), _read_json(output)))
        return list(self._text("output", shown.text.strip(), output.strip()))

    def as_it_came(self, command: str) -> str:
        """The command with the values of this run in place of those shown."""
        if not self.came:
            return command
        # In one go: references are counted up, so what came for one may be what is shown for another.
        shown = sorted(map(re.escape, self.came), key=len, reverse=True)
        return re.sub("|".join(shown), lambda found: self.came[found[0]], command)

    def _http(self, shown: str, output: str) -> Iterator[str]:
        shown_status, shown_headers, shown_body = _parts(shown)
        status, headers, body = _parts(output.replace("\r\n", "\n"))
        yield from self._text("status", shown_status, status)
        for name, value in shown_headers.items():
            yield from self._header(name, value, headers.get(name, ""))
        if shown_body.strip():
            yield from self._json("", _shown_json(shown_body), _read_json(body))

    def _header(self, name: str, shown: str, came: str) -> Iterator[str]:
        if name == "retry-after":
            if not came.isdigit():
                yield f"{name}: no number of seconds came, but {came!r}"
            return
        yield from self._text(name, shown, came)

    def _json(self, pointer: str, shown: Any, came: Any) -> Iterator[str]:
        if isinstance(shown, dict) and isinstance(came, dict):
            yield from self._object(pointer, shown, came)
        elif isinstance(shown, list) and isinstance(came, list) and len(shown) == len(came):
            for at, (one, other) in enumerate(zip(shown, came, strict=True)):
                yield from self._json(f"{pointer}/{at}", one, other)
        elif isinstance(shown, str) and isinstance(came, str):
            # A cursor is opaque: all that can be said of it is that it is taken back.
            compare = self._same if pointer in CURSORS else self._text
            yield from compare(pointer, shown, came)
        elif pointer.endswith(DURATION) and isinstance(came, int | Decimal):
            if not isinstance(shown, int | Decimal):
                yield f"{pointer}: {shown!r} is shown, a duration came"
        elif (type(shown), shown) != (type(came), came):
            yield f"{pointer}: {shown!r} is shown, {came!r} came"

    def _object(self, pointer: str, shown: dict[str, Any], came: dict[str, Any]) -> Iterator[str]:
        names = [name for name in shown if name != ELIDED]
        if ELIDED not in shown and names != list(came):
            yield f"{pointer}: the members {names} are shown, {list(came)} came"
        for name in names:
            if name in came:
                yield from self._json(f"{pointer}/{name}", shown[name], came[name])
            elif ELIDED in shown:
                yield f"{pointer}/{name}: it is shown, but did not come"

    def _text(self, where: str, shown: str, came: str) -> Iterator[str]:
        if _masked(shown) != _masked(came):
            yield f"{where}: {shown!r} is shown, {came!r} came"
            return
        for one, other in zip(_VARYING.finditer(shown), _VARYING.finditer(came), strict=True):
            if one.lastgroup == "time":
                self.came.setdefault(one[0], other[0])
            elif one.lastgroup not in _OF_ITS_KIND:
                yield from self._same(where, one[0], other[0])

    def _same(self, where: str, shown: str, came: str) -> Iterator[str]:
        """One value shown is one value that came, and two are two."""
        if self.came.setdefault(shown, came) != came:
            yield f"{where}: {shown} was shown before for {self.came[shown]}, now {came} came"
        elif self._shown.setdefault(came, shown) != shown:
            yield f"{where}: {shown} is shown for what was shown before as {self._shown[came]}"


def _masked(text: str) -> str:
    return _VARYING.sub(lambda found: f"<{found.lastgroup}>", text)


def _parts(answer: str) -> tuple[str, dict[str, str], str]:
    head, _, body = answer.partition("\n\n")
    status, *lines = head.splitlines() or [""]
    pairs = (line.partition(": ") for line in lines)
    return status, {name.lower(): value for name, _, value in pairs}, body


def _shown_json(text: str) -> Any:
    return _read_json(text.replace(ELIDED, f'"{ELIDED}": null'))


def _read_json(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError:
        return f"no JSON: {text}"
