"""The world outside of the demo, in a process of its own that knows nothing of the database."""

import os
import socket
import sys
from collections.abc import Mapping

from holdfast.demo.outside.app import OutsideSettings, outside_app
from holdfast.demo.outside.receiver import Journal
from holdfast.observability.logging import set_up_logging
from holdfast.server.demo import HOLDFAST_URL, HOOK_SECRET, PAYMENT_SECRET, TIME_ZONE
from holdfast.server.process import leave_with_parent
from holdfast.server.web_server import WebServer

_OPEN_REQUESTS_SECONDS = 5


def run(told: OutsideSettings, listener: socket.socket, lifeline: int) -> None:
    journal = Journal()
    server = WebServer(outside_app(told, journal), journal.close, _OPEN_REQUESTS_SECONDS)
    leave_with_parent(lifeline, server.leave)
    server.run(sockets=[listener])


def _told(given: Mapping[str, str]) -> OutsideSettings:
    return OutsideSettings(given[HOOK_SECRET], given[PAYMENT_SECRET], given[HOLDFAST_URL], given[TIME_ZONE])


if __name__ == "__main__":
    set_up_logging()
    run(_told(os.environ), socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2]))
