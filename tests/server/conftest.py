import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.observability import logging


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The loop of the real server, which is stricter about connections that are closed."""
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
def request_log(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    stream = io.StringIO()
    monkeypatch.setattr(logging, "_request_handler", logging.BatchHandler(stream))
    return lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
