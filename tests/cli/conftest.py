import pytest


@pytest.fixture
def settings(postgres_url: str) -> dict[str, str]:
    return {"HOLDFAST_DATABASE_URL": postgres_url}
