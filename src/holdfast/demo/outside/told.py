"""What the world outside is told when it starts: the two secrets it shares with Holdfast, and little more."""

from typing import NamedTuple


class Told(NamedTuple):
    hook_secret: str
    """Of the endpoint that is registered for the receiver."""
    payment_secret: str
    """Signs the way to the payment page, and what that answers. Empty: payments are made elsewhere."""
    holdfast_url: str
    time_zone: str
