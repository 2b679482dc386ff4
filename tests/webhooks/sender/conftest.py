"""The workers run on uvloop; the loop of the standard library has to do as well."""

import pytest


@pytest.fixture(
    params=[pytest.param(False, marks=pytest.mark.slow, id="asyncio"), pytest.param(True, id="uvloop")]
)
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param}
