"""A client that a third-party generator makes of our description works against our server."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import httpx
import pytest

from holdfast.web.openapi.document import openapi_document
from tests.support.bodies import without
from tests.support.client import NO_TLS, Project, Unit
from tests.support.keys import Keys
from tests.support.server import HOLDFAST, RunningServer, wait_until
from tests.support.webhooks import NOBODY_LISTENS

pytestmark = pytest.mark.slow

GENERATOR = HOLDFAST.with_name("openapi-python-client")
PACKAGE = "generated_holdfast_client"
OPTIONS = ["--path", "openapi.json", "--config", "config.json", "--meta", "none", "--fail-on-warning"]
# The generator knows no type for JSON lines; its own formatter is left out, for nobody reads the result.
CONFIGURATION = {
    "post_hooks": [],
    "content_type_overrides": {"application/x-ndjson": "application/octet-stream"},
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """A warning of the generator fails: it would mean that a part of the client is missing."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(openapi_document()))
    (folder / "config.json").write_text(json.dumps(CONFIGURATION))
    done = subprocess.run(
        [GENERATOR, "generate", *OPTIONS, "--output-path", PACKAGE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield import_module(PACKAGE)
    sys.path.remove(str(folder))


OpenWith = Callable[[str], Any]
"""A client that sends this key or token."""


@pytest.fixture
def open_with(generated: ModuleType, real_server: RunningServer) -> Iterator[OpenWith]:
    with ExitStack() as opened:
        yield lambda token: opened.enter_context(
            generated.AuthenticatedClient(
                base_url=real_server.address, token=token, verify_ssl=NO_TLS, raise_on_unexpected_status=True
            )
        )


@pytest.fixture
def api(open_with: OpenWith, api_key: str) -> Any:
    return open_with(api_key)


@pytest.fixture
def staff(open_with: OpenWith, keys: Keys) -> Any:
    return open_with(keys.issue(scopes=("backoffice",)).text)


# What the generator makes of the cookie is a way that httpx means to give up.
of_the_cookie = pytest.mark.filterwarnings("ignore:Setting per-request cookies:DeprecationWarning")


def call(name: str, group: str = "units") -> Any:
    return import_module(f"{PACKAGE}.api.{group}.{name}")


def model(name: str) -> Any:
    return getattr(import_module(f"{PACKAGE}.models"), name)


def put(api: Any, project: Project, code: str, **fields: Any) -> Any:
    body = model("UnitReplacement")(type_="apartment", area_sqm=120.5, price_sar=950000.25, **fields)
    return call("put_unit").sync_detailed(project.slug, code, client=api, body=body)


def test_it_puts_patches_and_lists_units(api: Any, project: Project, http: httpx.Client) -> None:
    response = put(api, project, "A/101", bedrooms=3, images=["https://media.example/a.jpg"])
    assert response.status_code == 201
    assert isinstance(response.parsed, model("Unit"))
    assert (response.parsed.code, response.parsed.price_sar) == ("A/101", 950000.25)
    times = ("createdAt", "updatedAt")  # The client spells them in a way of its own.
    assert without(response.parsed.to_dict(), *times) == without(Unit(http, project, "A/101").read(), *times)
    assert put(api, project, "A/101", bedrooms=3).status_code == 200
    change = model("UnitPatch")(bedrooms=None, status=model("SettableStatus").UNAVAILABLE)
    unit = call("patch_unit").sync(project.slug, "A/101", client=api, body=change)
    assert (unit.bedrooms, unit.status, unit.price_sar) == (None, "unavailable", 950000.25)
    for code in ("A-102", "A-103"):
        put(api, project, code)
    first = call("list_units").sync(project.slug, client=api, limit=2)
    second = call("list_units").sync(project.slug, client=api, limit=2, cursor=first.next_cursor)
    assert [unit.code for unit in (*first.units, *second.units)] == ["A-102", "A-103", "A/101"]
    assert second.next_cursor is None


@of_the_cookie
def test_it_understands_refusals(api: Any, staff: Any, open_with: OpenWith, project: Project) -> None:
    put(api, project, "A-101")
    held = call("open_unit", "sales").sync(project.slug, "A-101", client=staff)
    patch_unit = call("patch_unit").sync
    locked = patch_unit(project.slug, "A-101", client=api, body=model("UnitPatch")(price_sar=1))
    assert isinstance(locked, model("Problem"))
    assert (locked.reason, locked.current_status, locked.fields) == ("terms-locked", "held", ["priceSar"])
    wrong = model("UnitPatch")(price_sar=-1, bedrooms=-1)
    invalid = patch_unit(project.slug, "A-101", client=api, body=wrong)
    assert sorted(fault.pointer for fault in invalid.errors) == ["/bedrooms", "/priceSar"]
    taken = call("hold_unit", "storefront").sync(project.slug, "A-101", client=open_with("none"))
    assert (taken.reason, taken.current_status) == ("not-available", "held")
    assert taken.hold_expires_at == held.hold_expires_at


@of_the_cookie
def test_it_sells_a_unit(api: Any, staff: Any, open_with: OpenWith, project: Project) -> None:
    put(api, project, "A-101", deposit_percent=10)
    hold = call("hold_unit", "storefront").sync(project.slug, "A-101", client=open_with("none"))
    assert (hold.unit.status, hold.unit.deposit_sar) == ("held", 95000.03)
    details = model("BuyerDetails")("Noura Al-Harbi", "noura@example.com", "+966 50 123 4567")
    buyer = open_with(hold.token)
    signed = call("sign_booking", "storefront").sync(hold.reference, client=buyer, body=details)
    assert (signed.status, signed.buyer.name, signed.deposit_confirmed_at) == (
        "signed",
        "Noura Al-Harbi",
        None,
    )
    call("confirm_deposit", "bookings").sync(hold.reference, client=staff)
    sold = call("close_sale_of_booking", "bookings").sync(hold.reference, client=staff)
    assert (sold.status, sold.terms.total_sar) == ("sold", 950000.25)
    assert isinstance(sold.closed_at, datetime)


def test_it_acts_on_a_unit_without_a_body_and_with_one(api: Any, staff: Any, project: Project) -> None:
    put(api, project, "A-101")
    held = call("open_unit", "sales").sync(project.slug, "A-101", client=staff)
    until = held.hold_expires_at + timedelta(minutes=1)
    extension = model("Extension")(until=until)
    extended = call("extend_unit", "sales").sync(project.slug, "A-101", client=staff, body=extension)
    assert extended.hold_expires_at == until
    free = call("cancel_hold", "sales").sync(project.slug, "A-101", client=staff)
    assert (free.status, free.booking_reference) == ("available", None)
    history = call("get_unit_history", "sales").sync(project.slug, "A-101", client=staff)
    assert [entry.action for entry in history.entries[:3]] == ["cancel-hold", "extend", "open"]


def test_it_settles_a_project(staff: Any, api: Any, project: Project) -> None:
    put(api, project, "A-1203")
    change = model("ProjectChange")(hold_seconds=0.5)
    settled = call("change_project", "settings").sync(project.slug, client=staff, body=change)
    assert (settled.hold_seconds, settled.reservation_days) == (0.5, None)
    layout = call("get_layout", "settings").sync(project.slug, client=staff)
    sent = model("LayoutReplacement").from_dict(layout.to_dict())
    again = call("put_layout", "settings").sync(project.slug, client=staff, body=sent)
    assert again == layout
    assert (again.units[0].floor, again.units[0].guessed) == (12, True)


def test_it_registers_an_endpoint_and_reads_its_log(staff: Any, project: Project) -> None:
    body = model("NewEndpoint")(url=NOBODY_LISTENS, projects=[project.slug], paused=True)
    made = call("add_endpoint", "webhooks").sync(client=staff, body=body)
    assert (made.state, made.projects, made.failing) == ("paused", [project.slug], None)
    ping = call("ping_endpoint", "webhooks").sync(made.id, client=staff)
    pending = model("DeliveryStatus").PENDING
    listed = call("list_deliveries", "webhooks").sync(client=staff, endpoint=made.id, status=pending)
    assert [one.id for one in listed.deliveries] == [ping.id]
    change = model("EndpointChange")(paused=False)
    call("change_endpoint", "webhooks").sync(made.id, client=staff, body=change)
    get_delivery = partial(call("get_delivery", "webhooks").sync, ping.id, client=staff)
    wait_until(lambda: get_delivery().attempts)
    tried = get_delivery()
    assert (tried.attempts[0].cause, tried.attempts[0].response) == ("The connection was refused.", None)
    assert call("remove_endpoint", "webhooks").sync_detailed(made.id, client=staff).status_code == 204
    refusal = call("resend_delivery", "webhooks").sync(ping.id, client=staff)
    assert isinstance(refusal, model("Problem"))
    assert (refusal.status, refusal.type_) == (409, "/problems/endpoint-removed")
