"""What stands outside of the demo, beside a real server: a receiver of webhooks and a payment page."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from html import unescape
from http import HTTPStatus

import httpx
import psutil
import pytest

from tests.docs.commands import check_complete, words_of
from tests.support.demo import PATIENCE_SECONDS, Demo, Visitor, demo_served
from tests.support.page_weight import MOST_BYTES, fonts_in, loaded_with, weight
from tests.support.server import environment

SOON = {"HOLDFAST_RETRY_FIRST_GAP_SECONDS": "0.2", "HOLDFAST_REHOLD_SECONDS": "0"}
SHORT_HOLD = {"holdSeconds": 3}
_COPIED = re.compile(r'data-copy="([^"]+)"')


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, module_postgres_url: str) -> Iterator[Demo]:
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url, **SOON}
    with demo_served(tmp_path_factory.mktemp("demo"), settings) as served:
        yield served


@pytest.fixture
def visitor(demo: Demo) -> Iterator[Visitor]:
    with Visitor(demo.printed["url"]) as visitor:
        yield visitor


def test_the_first_page_shows_five_things_to_try_in_both_languages(demo: Demo) -> None:
    english, arabic = (demo.http.get("/", params={"lang": code}).text for code in ("en", "ar"))
    assert 'dir="rtl"' in arabic
    for page in (english, arabic):
        assert 'href="/p/narjis-heights' in page
        assert f'href="{demo.printed["receiver"]}/' in page
        assert "/backoffice/projects/narjis-heights" in page
        assert "simulate --buyers 20" in page
    assert demo.printed["key"] not in english


@pytest.mark.parametrize("language", ["en", "ar"])
def test_the_first_page_is_under_100_kb_before_its_picture(demo: Demo, language: str) -> None:
    page = demo.http.get("/", params={"lang": language})
    loaded = loaded_with(demo.http.get, page)
    assert {httpx.URL(address).path.rpartition(".")[2] for address in loaded} == {"css", "js", "svg"}
    fonts = [demo.http.get(font) for font in fonts_in(loaded)]
    assert weight([page, *loaded.values(), *fonts]) < MOST_BYTES


def test_the_commands_of_the_first_page_do_what_it_says(demo: Demo) -> None:
    network, key, price, simulate = map(unescape, _COPIED.findall(demo.http.get("/").text))
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
    assert list(variables) == ["HOLDFAST_PUBLIC_URL"]
    check_complete(["serve", *made[2].removeprefix("ARGS=").split()])


def test_a_hold_arrives_on_the_receivers_page_verified(demo: Demo) -> None:
    demo.hold("A-0501")
    (entry,) = demo.arrivals("A-0501")
    assert "unit.held" in entry
    assert "signature verified" in entry
    assert entry in demo.outside.get("/?lang=en").text
    assert "التوقيع صحيح" in demo.outside.get("/?lang=ar").text


def test_a_forged_delivery_is_refused_with_the_reason(demo: Demo) -> None:
    forged = '{"type": "unit.sold", "data": {"unit": {"code": "forged <b>", "status": "\\ud800"}}}'
    headers = {"X-Service-Timestamp": "1700000000", "X-Service-Signature": f"sha256={'0' * 64}"}
    assert demo.outside.post("/hook", content=forged, headers=headers).status_code == HTTPStatus.UNAUTHORIZED
    assert demo.outside.post("/hook", content=b"\xff{").status_code == HTTPStatus.UNAUTHORIZED
    (entry,) = demo.arrivals("forged &lt;b&gt;")
    assert "more than five minutes old" in entry
    assert "signature verified" not in entry
    assert "There is no signature." in demo.outside.get("/?lang=en").text


def test_a_delivery_that_was_answered_with_500_comes_again(demo: Demo) -> None:
    assert (
        "Answer normally" in demo.outside.post("/fail-next", data={"fail": "yes"}, follow_redirects=True).text
    )
    demo.hold("A-0502")
    first, second = demo.arrivals("A-0502", count=2)
    assert "answered with 500" in first
    assert "came before" not in first
    assert "came before" in second
    assert "answered with 500" not in second


def test_a_form_of_another_site_changes_nothing(demo: Demo) -> None:
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    demo.outside.post("/fail-next", data={"fail": "yes"}, headers=elsewhere)
    assert "Answer normally" not in demo.outside.get("/?lang=en").text


def test_a_payment_reserves_the_unit_by_the_signed_callback(demo: Demo, visitor: Visitor) -> None:
    back = visitor.buy("A-0603", "now").page
    assert "/p/narjis-heights/bookings/" in str(back.url)
    assert demo.unit("A-0603")["status"] == "reserved"
    reserved = next(entry for entry in demo.arrivals("A-0603", count=2) if "unit.reserved" in entry)
    assert back.url.path.rpartition("/")[2] in reserved


def test_a_declined_payment_leads_back_and_changes_nothing(demo: Demo, visitor: Visitor) -> None:
    back = visitor.buy("A-0605", "decline").page
    assert "/p/narjis-heights/bookings/" in str(back.url)
    assert "Pay the deposit" in back.text
    assert demo.unit("A-0605")["status"] == "held"


def test_a_payment_that_comes_after_the_hold_takes_the_free_unit_again(demo: Demo, visitor: Visitor) -> None:
    settings = "/v1/backoffice/projects/narjis-heights"
    demo.http.patch(settings, json=SHORT_HOLD).raise_for_status()
    waiting = visitor.buy("A-0701", "late").page
    assert waiting.url.path.startswith("/payments/")
    demo.http.patch(settings, json={"holdSeconds": None}).raise_for_status()
    entries = demo.arrivals("A-0701", count=4)
    events = [
        name for entry in entries for name in ("held", "released", "reserved") if f"unit.{name}" in entry
    ]
    assert events == ["held", "released", "held", "reserved"]
    assert "/bookings/" in str(visitor.look_at(str(waiting.url)).page.url)


def test_a_way_to_the_payment_page_that_was_changed_is_refused(demo: Demo) -> None:
    for query in ("", "reference=Q39-4F6-4K6&amountSar=1", "reference=X&timestamp=1&signature=sha256%3D00"):
        refused = demo.outside.get(f"/pay?{query}", headers={"Accept-Language": "ar"})
        assert refused.status_code == HTTPStatus.FORBIDDEN
        assert "لا يوجد ما يُدفع هنا" in refused.text
    assert demo.outside.post("/pay", data={"link": "x", "choice": "now"}).status_code == HTTPStatus.FORBIDDEN
    assert demo.outside.get("/payments/pay_nothing").status_code == HTTPStatus.NOT_FOUND


def test_a_killed_world_is_started_again_and_knows_its_secrets(demo: Demo) -> None:
    (killed,) = demo.children("external")
    killed.kill()
    psutil.wait_procs([killed], timeout=PATIENCE_SECONDS)
    # The supervisor has the socket, so whoever comes meanwhile waits.
    demo.hold("A-0801")
    (entry,) = demo.arrivals("A-0801")
    assert "signature verified" in entry
    assert demo.children("external") != [killed]
    # A browser that was there before knows a number that this one has not reached.
    with demo.outside.stream("GET", "/live?lang=en", headers={"Last-Event-ID": "5000"}) as stream:
        assert next(line for line in stream.iter_lines() if line.startswith("id: ")) == "id: 1"


def test_nothing_outlives_a_killed_supervisor(demo: Demo) -> None:
    """The last of this file: the server is gone after it."""
    family = demo.children()
    assert demo.children("external")
    demo.process.send_signal(signal.SIGKILL)
    demo.process.wait()
    _, alive = psutil.wait_procs(family, timeout=PATIENCE_SECONDS)
    assert not alive
