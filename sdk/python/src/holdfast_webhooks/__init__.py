"""Receive the signed webhooks of Holdfast: check them, read them, and act on each of them once."""

from holdfast_webhooks.asgi import Receiver
from holdfast_webhooks.event import Event, Unit
from holdfast_webhooks.refused import Reason, SignatureRefused
from holdfast_webhooks.seen import Claim, SeenElsewhere, SeenIds, SeenInMemory
from holdfast_webhooks.seen_in_sqlite import SeenInSqlite
from holdfast_webhooks.signature import TOLERANCE_SECONDS, sign
from holdfast_webhooks.verifying import verify
from holdfast_webhooks.wsgi import WsgiReceiver

__version__ = "0.1.0"
__all__ = [
    "TOLERANCE_SECONDS",
    "Claim",
    "Event",
    "Reason",
    "Receiver",
    "SeenElsewhere",
    "SeenIds",
    "SeenInMemory",
    "SeenInSqlite",
    "SignatureRefused",
    "Unit",
    "WsgiReceiver",
    "sign",
    "verify",
]
