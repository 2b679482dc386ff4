"""A real `serve --demo`: its first page, and a buyer who pays beside its receiver and its payment page."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from ipaddress import ip_address
from typing import Any

import httpx
import psutil
import pytest

from tests.docs.commands import check_complete, words_of
from tests.support.buying import BUYER
from tests.support.page_weight import MOST_BYTES, fonts_in, loaded_with, weight
from tests.support.server import HOLDFAST, PATIENCE_SECONDS, STOP_SECONDS, environment
from tests.support.staff_client import Person

COPIED = re.compile(r'data-copy="([^"]+)"')


@dataclass
class Demo:
    printed: dict[str, Any]
    process: subprocess.Popen[str]
    http: httpx.Client
    """Of the server, with the demo's key."""
    outside: httpx.Client

    def children(self, kind: str = "") -> list[psutil.Process]:
        family = psutil.Process(self.process.pid).children()
        return [one for one in family if not kind or f"holdfast.server.{kind}" in one.cmdline()]

    def hold(self, code: str) -> None:
        answer = self.http.post(f"/v1/storefront/projects/narjis-heights/units/{code}/hold")
        assert answer.status_code == 201, answer.text

    def unit(self, code: str) -> dict[str, Any]:
        path = f"/v1/integration/projects/narjis-heights/units/{code}"
        found: dict[str, Any] = self.http.get(path).raise_for_status().json()
        return found

    def arrivals(self, text: str, count: int = 1) -> list[str]:
        """The deliveries on the receiver's page that have this text, as its stream has them."""
        found: list[str] = []
        with self.outside.stream("GET", "/live?after=0&lang=en") as stream:
            for line in stream.iter_lines():
                if line.startswith("data: ") and text in line:
                    found.append(json.loads(line.removeprefix("data: ")))
                if len(found) >= count:
                    break
        return found


def client(address: str, **options: Any) -> httpx.Client:
    return httpx.Client(base_url=address, trust_env=False, timeout=PATIENCE_SECONDS, **options)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url, "HOLDFAST_REHOLD_SECONDS": "0"}
    with (folder / "demo.log").open("a") as log:
        process = subprocess.Popen(
            [HOLDFAST, "serve", "--port", "0", "--demo", "--json"],
            env=environment(settings), stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder,
            start_new_session=True,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        with process.stdout:
            printed = json.loads(process.stdout.readline())
        key = {"Authorization": f"Bearer {printed['key']}"}
        with client(printed["url"], headers=key) as http, client(printed["receiver"]) as outside:
            yield Demo(printed, process, http, outside)
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


def test_the_first_page_shows_what_to_try_in_both_languages_and_is_under_100_kb(demo: Demo) -> None:
    for language in ("en", "ar"):
        page = demo.http.get("/", params={"lang": language})
        assert ('dir="rtl"' in page.text) == (language == "ar")
        for part in (
            'href="/p/narjis-heights',
            f'href="{demo.printed["receiver"]}/',
            "/backoffice/projects/narjis-heights",
            "simulate --buyers 20",
        ):
            assert part in page.text
        assert demo.printed["key"] not in page.text
        loaded = loaded_with(demo.http.get, page)
        assert {httpx.URL(address).path.rpartition(".")[2] for address in loaded} == {"css", "js", "svg"}
        fonts = [demo.http.get(font) for font in fonts_in(loaded)]
        assert weight([page, *loaded.values(), *fonts]) < MOST_BYTES


def test_the_commands_of_the_first_page_do_what_it_says(demo: Demo) -> None:
    network, key, price, simulate = map(unescape, COPIED.findall(demo.http.get("/").text))
    changed = subprocess.run(
        ["bash", "-euc", f"{key.replace('hfk_...', demo.printed['key'])}\n{price}"],
        env=environment({}), capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS,
    )  # fmt: skip
    unit = json.loads(changed.stdout)
    assert demo.unit(unit["code"]) == unit
    assert json.loads(words_of(price)[1][-1]).items() <= unit.items()
    check_complete(words_of(simulate)[1][1:])
    variables, made = words_of(network)
    assert made[:2] == ["make", "serve"]
    port = httpx.URL(demo.printed["url"]).port
    public_url = httpx.URL(variables["HOLDFAST_PUBLIC_URL"])
    assert not ip_address(public_url.host).is_loopback
    assert (public_url.scheme, public_url.port) == ("http", port)
    assert f"--port {port}" in made[2]
    check_complete(["serve", *made[2].removeprefix("ARGS=").split()])


def value_of(name: str, page: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])


def test_a_payment_reserves_the_unit_and_arrives_at_the_receiver_verified(demo: Demo) -> None:
    unit_page = "/p/narjis-heights/units/A-0603"
    with Person(demo.printed["url"]) as buyer:
        booking = buyer.submit(f"{unit_page}/hold", on=unit_page).headers["location"]
        signature = {**BUYER, "consent": "yes", "read": value_of("read", buyer.see(booking))}
        buyer.done(f"{booking}/sign", signature, on=booking)
        link = buyer.submit(f"{booking}/pay", on=booking).headers["location"]
    form = {"link": value_of("link", demo.outside.get(link).text), "choice": "now"}
    payment = demo.outside.post("/pay", data=form).headers["location"]
    assert demo.outside.get(payment).headers["location"].startswith(f"{demo.printed['url']}{booking}")
    assert demo.unit("A-0603")["status"] == "reserved"
    entries = demo.arrivals("A-0603", count=2)
    assert all("signature verified" in entry for entry in entries)
    reserved = next(entry for entry in entries if "unit.reserved" in entry)
    assert booking.rpartition("/")[2] in reserved


@pytest.mark.slow
def test_a_killed_process_of_the_external_systems_is_started_again_and_knows_its_secrets(demo: Demo) -> None:
    (killed,) = demo.children("external")
    killed.kill()
    psutil.wait_procs([killed], timeout=PATIENCE_SECONDS)
    # The supervisor has the socket, so whoever comes meanwhile waits.
    demo.hold("A-0801")
    (entry,) = demo.arrivals("A-0801")
    assert "signature verified" in entry
    assert demo.children("external") != [killed]


@pytest.mark.slow
def test_no_process_outlives_a_killed_supervisor(demo: Demo) -> None:
    """The last of this file: the server is gone after it."""
    family = demo.children()
    assert demo.children("external")
    demo.process.send_signal(signal.SIGKILL)
    demo.process.wait()
    _, alive = psutil.wait_procs(family, timeout=PATIENCE_SECONDS)
    assert not alive
