"""The demo's receiver is an endpoint like any other; each start registers it, with a secret of its own."""

from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import Wishes
from holdfast.operations.endpoints import Endpoints

DESCRIPTION = "Demo receiver"

_MOST_ENDPOINTS = 1000


async def register_receiver(subscribing: Endpoints, url: str) -> str:
    """Its secret. The receiver of the last start is gone, and its endpoint with it."""
    for endpoint in await subscribing.page(None, None, _MOST_ENDPOINTS):
        if endpoint.wishes.description == DESCRIPTION:
            await subscribing.remove(endpoint.id, COMMAND)
    issued = await subscribing.add(Wishes(url, DESCRIPTION), COMMAND)
    return issued.text
