"""What the back office says on every page, and when the database cannot be asked."""

import httpx
import pytest
from starlette.responses import Response

from holdfast.domain.staff import SessionTimes
from holdfast.operations.announcing import Announcing
from holdfast.operations.signing_in import SigningIn
from holdfast.storage.database import open_database
from holdfast.storage.encryption_keys import new_encryption_key
from holdfast.storage.sealing import SecretBox
from holdfast.web.backoffice.desk import Desk, Elsewhere
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.front import Front
from holdfast.web.html.cookies import Cookies
from holdfast.web.routing import Place
from tests.support.http_serving import client_of

NOBODY_LISTENS = "postgresql://nobody@127.0.0.1:1/nothing"
STRICT = "strict-transport-security"


async def asked(path: str, public_url: str, **headers: str) -> httpx.Response:
    async with open_database(NOBODY_LISTENS) as database:
        signing_in = SigningIn(database, SecretBox([new_encryption_key()]), SessionTimes())
        desk = Desk(signing_in, Announcing(database), Cookies.for_address(public_url), "Asia/Riyadh")
        places: list[Place] = [desk.page(f"{PREFIX}/page", None, GET=shown), Elsewhere(desk)]
        async with client_of(Front(places)) as client:
            return await client.get(path, headers=headers)


async def shown(visit: Visit) -> Response:
    raise AssertionError(visit)


@pytest.mark.parametrize("path", ["/backoffice/page", "/backoffice/page/", "/backoffice/nowhere"])
async def test_browsers_that_came_over_https_are_told_to_stay_there(path: str) -> None:
    assert (await asked(path, "https://units.example.com")).headers[STRICT] == "max-age=31536000"
    for plain in ("http://units.example.com", "http://localhost:8000"):
        assert STRICT not in (await asked(path, plain)).headers


@pytest.mark.parametrize("path", ["/backoffice/page", "/backoffice/nowhere"])
async def test_who_cannot_be_known_because_the_database_is_away_is_told_so_on_a_page(path: str) -> None:
    cookie = f"__Host-holdfast_session={'x' * 43}"
    answer = await asked(path, "https://units.example.com", cookie=cookie, accept="text/html")
    assert answer.status_code == 503
    assert answer.headers["content-type"].startswith("text/html")
    assert STRICT in answer.headers
