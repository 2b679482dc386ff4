"""Storage runs on every PostgreSQL that the wheel has."""

import pytest


@pytest.fixture(scope="session", params=[16, 18], ids=["postgres16", "postgres18"])
def postgres_version(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version
