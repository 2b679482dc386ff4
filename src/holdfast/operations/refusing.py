"""Every fault that was found, told at once."""

from holdfast.domain.errors import Fault, InvalidInput


def refuse(*faults: Fault | None) -> None:
    found = [fault for fault in faults if fault is not None]
    if found:
        raise InvalidInput(found)
