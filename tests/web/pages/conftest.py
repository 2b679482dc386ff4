"""What the pages of both sides share: the server, staff with a key, projects and units."""

from collections.abc import Callable

import httpx
import pytest

from tests.support.bodies import full
from tests.support.client import Project, Unit
from tests.web.api.conftest import (  # noqa: F401 - the same ground as that of the API
    backoffice_key,
    desk,
    http,
    inbox,
    new_project,
    off_sale,
    project,
    public,
    stored,
    unit,
)


@pytest.fixture
def new_unit(http: httpx.Client, project: Project) -> Callable[..., Unit]:  # noqa: F811
    """Makes a unit whose floor is guessed from its code."""

    def make(code: str, **fields: object) -> Unit:
        made = Unit(http, project, code)
        made.create(full(**{"floor": None, **fields}))
        return made

    return make
