"""Schemathesis reads our own description and looks for an answer that it does not promise."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from holdfast.domain.api_key import Scope
from tests.support.bodies import minimal
from tests.support.buying import Buyer, Hold
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.payment_system import SETTINGS as PAYMENTS
from tests.support.projects import add_project
from tests.support.sales_project import NO_HOLD_LIMIT
from tests.support.server import HOLDFAST, RunningServer, environment, serving
from tests.support.sql import Sql
from tests.support.webhooks import Registrar

pytestmark = pytest.mark.slow

SCHEMATHESIS = HOLDFAST.with_name("schemathesis")
HOOKS = Path(__file__).parents[2] / "support" / "schemathesis_lines.py"
CONFIGURATION = f"""
hooks = "{HOOKS}"

# Methods that are not offered are in test_http.py.
[phases.coverage]
unexpected-methods = []

# Not every rule can be told in a schema (an id must be that of the unit, a code must be in NFC), so
# what fits the schema may still be refused.
[checks]
positive_data_acceptance.enabled = false
# An If-Match that has not the form of an ETag matches nothing: 412.
negative_data_rejection.expected-statuses = [
    400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428, 429,
]

# The bulk route answers 200 with a problem for each item that breaks the schema.
[[operations]]
include-operation-id = "putUnits"
checks.negative_data_rejection.enabled = false

# Spaces at the ends are dropped before the length of a text is checked.
[[operations]]
include-operation-id = "changeSeller"
checks.negative_data_rejection.enabled = false

[[operations]]
include-operation-id = "changeProjectSeller"
checks.negative_data_rejection.enabled = false

# An empty object counts as no body, though it names no buyer.
[[operations]]
include-operation-id = "closeSale"
checks.negative_data_rejection.enabled = false
"""
SELLING = "^/v1/(storefront|backoffice)/"
WEBHOOKS = "^/v1/backoffice/(endpoints|deliveries)"


@pytest.fixture(scope="module")
def sql_here(module_postgres_url: str) -> Iterator[Sql]:
    with Sql(module_postgres_url) as connection:
        yield connection


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[RunningServer]:
    """A server of its own: what is held here would count against the other tests' address."""
    settings = {
        "HOLDFAST_DATABASE_URL": module_postgres_url, **NO_HOLD_LIMIT, **PAYMENTS,
        # A wrong key is to be 401, however many there were.
        "HOLDFAST_WRONG_KEYS_PER_MINUTE": "0",
    }  # fmt: skip
    with serving(tmp_path_factory.mktemp("explored"), settings) as running:
        yield running


@pytest.fixture
def key(sql_here: Sql, module_postgres_url: str) -> str:
    """It opens everything, so that no answer is hidden behind a 403. Each test has its own."""
    return Keys(sql_here, module_postgres_url).issue(scopes=tuple(Scope)).text


@pytest.fixture
def http(explored: RunningServer, key: str) -> Iterator[httpx.Client]:
    with integration_client(explored.address, key) as client:
        yield client


@pytest.fixture
def project(sql_here: Sql) -> Project:
    return add_project(sql_here)


def with_key(key: str) -> str:
    return f'\n[headers]\nAuthorization = "Bearer {key}"\n'


def with_parameters(**values: str) -> str:
    return "\n[parameters]\n" + "".join(f'"path.{name}" = "{value}"\n' for name, value in values.items())


def with_own_booking(hold: Hold) -> str:
    """The buyer's, to which staff do nothing: a new link would end the token."""
    return f"""
[[operations]]
include-path-regex = "^/v1/storefront/bookings/"
headers = {{ Authorization = "Bearer {hold.token}" }}
parameters = {{ "path.reference" = "{hold.reference}" }}
# The answer to another token is 404: whether there is such a booking is not told.
checks.ignored_auth.enabled = false
"""


def with_known_ids(**ids: str) -> str:
    """By the folder of the path."""
    return "".join(
        f"""
[[operations]]
include-path-regex = "^/v1/backoffice/{folder}/"
parameters = {{ "path.id" = "{known}" }}
"""
        for folder, known in ids.items()
    )


def explore(folder: Path, server: RunningServer, config: str, *options: str) -> None:
    configuration = folder / "schemathesis.toml"
    configuration.write_text(config)
    arguments = [f"{server.address}/openapi.json", "--generation-deterministic", "--no-shrink", *options]
    done = subprocess.run(
        [SCHEMATHESIS, "--no-color", "--config-file", configuration, "run", *arguments],
        cwd=folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def held(http: httpx.Client, project: Project, code: str) -> Hold:
    unit = Unit(http, project, code)
    unit.create(minimal(depositPercent=10))
    return Buyer(http).hold(unit)


def test_in_a_project_that_exists_every_answer_is_as_described(
    explored: RunningServer, key: str, project: Project, tmp_path: Path
) -> None:
    config = CONFIGURATION + with_key(key) + with_parameters(slug=project.slug)
    options = ("--exclude-path-regex", SELLING, "--max-examples", "3")
    explore(tmp_path, explored, config, "--phases", "examples,coverage,fuzzing,stateful", *options)


def test_around_a_booking_that_exists_every_answer_is_as_described(
    explored: RunningServer, key: str, project: Project, http: httpx.Client, tmp_path: Path
) -> None:
    reference = held(http, project, "A-1203").reference
    own = with_own_booking(held(http, project, "A-1204"))
    known = with_parameters(slug=project.slug, code="A-1203", reference=reference)
    config = CONFIGURATION + own + with_key(key) + known
    options = (
        *("--include-path-regex", SELLING, "--exclude-path-regex", WEBHOOKS, "--max-examples", "4"),
        *("--exclude-operation-id", "revokeKey"),
    )
    explore(tmp_path, explored, config, "--phases", "examples,coverage,fuzzing", *options)


def test_around_an_endpoint_that_exists_every_answer_is_as_described(
    explored: RunningServer, key: str, http: httpx.Client, tmp_path: Path
) -> None:
    registrar = Registrar(http)
    endpoint_id = registrar.add()["id"]
    delivery_id = registrar.tried(registrar.ping(endpoint_id)["id"])["id"]
    known = with_known_ids(endpoints=endpoint_id, deliveries=delivery_id)
    options = ("--include-path-regex", WEBHOOKS, "--exclude-operation-id", "removeEndpoint")
    config = CONFIGURATION + known + with_key(key)
    phases = ("--phases", "examples,coverage,fuzzing", "--max-examples", "3")
    explore(tmp_path, explored, config, *options, *phases)
    assert registrar.read(endpoint_id)["id"] == endpoint_id


def test_anywhere_every_answer_is_as_described(explored: RunningServer, key: str, tmp_path: Path) -> None:
    explore(tmp_path, explored, CONFIGURATION + with_key(key), "--phases", "fuzzing", "--max-examples", "3")
