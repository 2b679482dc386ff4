"""What runs during a chaos run: databases, relays, servers, receivers and clients."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos.history import History

if TYPE_CHECKING:
    from tests.chaos.clients import Clients
    from tests.chaos.network import Network
    from tests.chaos.postgres import Pair
    from tests.chaos.receivers import Receivers
    from tests.chaos.servers import Servers


@dataclass
class Scene:
    folder: Path
    history: History
    pair: Pair
    """The primary and the synchronous standby."""
    network: Network
    """The relays through which Holdfast and the standby reach the databases."""
    servers: Servers
    """Two installations of `holdfast serve`, each with a supervisor, a web process and a worker."""
    receivers: Receivers
    clients: Clients
