"""What is true of this installation as a whole."""

from holdfast.storage.database import Connection

_NOTE_DEMO = "update installation set demo = $1 where demo <> $1"
_NOTE_ADDRESS = "update installation set public_url = $1 where public_url is distinct from $1"
_ADDRESS = "select public_url from installation"
_IS_DEMO = "select demo from installation"


async def note_demo(connection: Connection, is_served: bool) -> None:
    await connection.execute(_NOTE_DEMO, is_served)


async def is_demo(connection: Connection) -> bool:
    return bool(await connection.fetchval(_IS_DEMO))


async def note_public_url(connection: Connection, url: str) -> None:
    await connection.execute(_NOTE_ADDRESS, url)


async def public_url(connection: Connection) -> str | None:
    """Where `serve` said that its pages are, when it was last started."""
    url: str | None = await connection.fetchval(_ADDRESS)
    return url
