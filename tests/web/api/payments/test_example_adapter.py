"""The adapter of `examples/` as a process of its own, between buyers and Holdfast."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from holdfast.domain.payment import PaymentRequest
from holdfast.operations.payments import HostedPaymentPage
from tests.docs.documents import ROOT
from tests.support.buying import Hold
from tests.support.payment_system import CALLBACK, SECRET, Till
from tests.support.ports import free_port, wait_until_it_listens
from tests.support.server import RunningServer, wait_until

ADAPTER = ROOT / "examples" / "payment-adapter" / "adapter.py"
BACK = "https://units.example.com/p/tower/bookings/1?paid=1"


@dataclass(frozen=True)
class Adapter:
    url: str
    folder: Path

    def written(self, reference: str) -> list[dict[str, Any]]:
        """What the adapter has written down of a booking: what was paid, and what came of it."""
        text = (self.folder / "payments.ndjson").read_text()
        lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]
        ids = {line["id"] for line in lines if line.get("reference") == reference}
        return [line for line in lines if line["id"] in ids]

    @property
    def printed(self) -> str:
        return (self.folder / "printed").read_text()

    def address(
        self,
        holdfast: str,
        booking: Mapping[str, Any],
        secret: str = SECRET,
        ago: timedelta = timedelta(),
    ) -> str:
        """As Holdfast makes it."""
        ends = datetime.fromisoformat(booking["holdExpiresAt"])
        asked = PaymentRequest(
            booking["reference"], booking["terms"]["depositSar"], BACK, holdfast + CALLBACK, "ar", ends,
            datetime.now(UTC) - ago,
        )  # fmt: skip
        return asyncio.run(HostedPaymentPage(self.url, secret).address_for(asked))


@contextmanager
def running(folder: Path) -> Iterator[Adapter]:
    port = free_port()
    settings = {"PAYMENT_SECRET": SECRET, "PORT": str(port), "PAYMENTS": "payments.ndjson"}
    with (folder / "printed").open("a") as printed:
        environment = {"PATH": os.environ["PATH"], **settings}
        command = [sys.executable, str(ADAPTER)]
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=printed)
    try:
        wait_until_it_listens(process, port)
        yield Adapter(f"http://127.0.0.1:{port}/pay", folder)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adapter]:
    with running(tmp_path_factory.mktemp("adapter")) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False, timeout=60) as client:
        yield client


def test_a_buyer_sees_the_amount_pays_once_and_goes_back(
    real_server: RunningServer, adapter: Adapter, signed: Hold, browser: httpx.Client
) -> None:
    address = adapter.address(real_server.address, signed.read())
    page = browser.get(address)
    assert page.status_code == 200
    assert f"SAR {signed.read()['terms']['depositSar']:.2f}" in page.text
    assert adapter.written(signed.reference) == []
    for _ in range(2):
        answer = browser.post(address)
        assert (answer.status_code, answer.headers["location"]) == (303, BACK)
    assert signed.read()["status"] == "reserved"
    wait_until(lambda: len(adapter.written(signed.reference)) == 2)
    paid, told = adapter.written(signed.reference)
    assert told == {"id": paid["id"], "outcome": "reserved"}


def test_nobody_is_charged_by_a_link_of_others_or_once_the_hold_is_over(
    real_server: RunningServer, adapter: Adapter, signed: Hold, browser: httpx.Client
) -> None:
    booking = signed.read()
    right = adapter.address(real_server.address, booking)
    for address in (
        right.replace("amountSar=", "amountSar=1"),
        right.replace("sha256=", "sha256=\u00e9"),
        right[:-1] + ("0" if right[-1] != "0" else "1"),
        adapter.address(real_server.address, booking, "another secret of somebody"),
        adapter.url,
        right.replace("/pay?", "/other?"),
    ):
        assert browser.get(address).status_code == 403
        assert browser.post(address).status_code == 403
    old = adapter.address(real_server.address, booking, ago=timedelta(minutes=6))
    assert browser.get(old).status_code == 403
    over = {**booking, "holdExpiresAt": "2026-01-01T00:00:00.000Z"}
    answer = browser.post(adapter.address(real_server.address, over))
    assert (answer.status_code, answer.headers["location"]) == (303, BACK)
    assert adapter.written(signed.reference) == []
    assert signed.read()["status"] == "signed"


def test_what_was_charged_before_a_crash_is_told_after_the_next_start(
    real_server: RunningServer, signed: Hold, tmp_path: Path
) -> None:
    payment = {
        "id": "pay_before_the_crash",
        "reference": signed.reference,
        "amountSar": f"{signed.read()['terms']['depositSar']:.2f}",
        "callbackUrl": real_server.address + CALLBACK,
    }
    (tmp_path / "payments.ndjson").write_text(json.dumps(payment) + '\n{"id": "pay_cut_off", "ref')
    with running(tmp_path) as adapter:
        told = {"id": payment["id"], "outcome": "reserved"}
        wait_until(lambda: adapter.written(signed.reference) == [payment, told])
    assert signed.read()["status"] == "reserved"


def test_it_tells_again_until_there_is_an_answer(adapter: Adapter, browser: httpx.Client) -> None:
    """Nothing listens where it was sent to."""
    nowhere = f"http://127.0.0.1:{free_port()}"
    booking = {
        "reference": "222-222-222",
        "terms": {"depositSar": 1},
        "holdExpiresAt": "2099-01-01T00:00:00.000Z",
    }
    assert browser.post(adapter.address(nowhere, booking)).status_code == 303
    wait_until(lambda: adapter.printed.count("not told yet pay_222222222") >= 2)
    assert len(adapter.written("222-222-222")) == 1


def test_what_holdfast_does_not_take_is_paid_back(
    real_server: RunningServer, adapter: Adapter, signed: Hold, till: Till, browser: httpx.Client
) -> None:
    booking = signed.read()
    assert till.told("pay_by_other_means", booking) == "reserved"
    browser.post(adapter.address(real_server.address, booking))
    wait_until(lambda: len(adapter.written(signed.reference)) == 2)
    paid, told = adapter.written(signed.reference)
    assert told["outcome"].startswith("refused: The deposit was paid by the payment pay_by_other_means")
    assert f"refund {paid['id']} {signed.reference}" in adapter.printed
