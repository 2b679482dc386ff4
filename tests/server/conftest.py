import pytest


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The loop of the real server, which is stricter about connections that are closed."""
    return "asyncio", {"use_uvloop": True}
