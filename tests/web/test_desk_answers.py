"""What the back office says on every page, and when the database cannot be asked."""

import httpx
import pytest

from tests.support.in_process import app_with, client_of

STRICT = "strict-transport-security"


async def asked(path: str, public_url: str, **headers: str) -> httpx.Response:
    app = app_with(public_url=public_url)
    async with app.router.lifespan_context(app), client_of(app) as client:
        return await client.get(path, headers=headers)


@pytest.mark.parametrize("path", ["/backoffice/projects", "/backoffice/projects/", "/backoffice/nowhere"])
async def test_browsers_that_came_over_https_are_told_to_stay_there(path: str) -> None:
    assert (await asked(path, "https://units.example.com")).headers[STRICT] == "max-age=31536000"
    for plain in ("http://units.example.com", "http://localhost:8000"):
        assert STRICT not in (await asked(path, plain)).headers


@pytest.mark.parametrize("path", ["/backoffice/projects", "/backoffice/nowhere"])
async def test_who_cannot_be_known_because_the_database_is_away_is_told_so_on_a_page(path: str) -> None:
    cookie = f"__Host-holdfast_session={'x' * 43}"
    answer = await asked(path, "https://units.example.com", cookie=cookie, accept="text/html")
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("text/html")
    assert STRICT in answer.headers
