"""The log of e-mail to buyers, over the API and on its page, and the language of an e-mail."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import UNLIMITED
from tests.support.backoffice import BACKOFFICE
from tests.support.client import succeeded
from tests.support.clusters import NEWEST
from tests.support.installation import Installation, installed
from tests.support.mail import MailServer, mail_server_in_thread
from tests.support.server import wait_until
from tests.support.staff_client import People, missing
from tests.web.pages.storefront.buyers import Buyer

FIELDS = {
    "id", "kind", "status", "recipient", "bookingReference", "projectSlug", "attempts", "lastError",
    "createdAt", "nextAttemptAt", "endedAt",
}  # fmt: skip


@pytest.fixture(scope="module")
def server_of_mail() -> Iterator[MailServer]:
    with mail_server_in_thread() as server:
        yield server


@pytest.fixture(scope="module")
def with_email(server_of_mail: MailServer, cluster_of: Any) -> Iterator[Installation]:
    cluster = cluster_of(NEWEST)
    url = cluster.new_database()
    with installed(url, {**UNLIMITED, **server_of_mail.settings}) as installation:
        yield installation
    cluster.drop_database(url)


def log(installation: Installation, **query: Any) -> list[dict[str, Any]]:
    page = succeeded(installation.http.get(f"{BACKOFFICE}/emails", params=query))
    assert all(set(one) == FIELDS for one in page["emails"])
    return list(page["emails"])


def sent(installation: Installation, count: int) -> list[dict[str, Any]]:
    wait_until(lambda: len(log(installation, status="sent")) == count)
    return log(installation)


def test_e_mail_is_in_the_language_of_the_signature_and_stands_in_the_log(
    with_email: Installation, server_of_mail: MailServer
) -> None:
    first, second, third = with_email.units(3)
    desk = with_email.desk
    over_api = desk.buyer.hold(first)
    over_api.sign()
    desk.did_to_booking(over_api.reference, "confirm-deposit")
    arabic = desk.buyer.hold(second)
    accepting = type(arabic.buyer)(arabic.buyer.http, {"Accept-Language": "ar-SA, en;q=0.5"})
    type(arabic)(accepting, second, arabic.reference, arabic.token).sign(buyerEmail="omar@example.com")
    Buyer(with_email.address, **{"accept-language": "ar"}).signed(third)
    latest, *_ = emails = sent(with_email, 4)
    assert [(one["kind"], one["status"], one["attempts"], one["lastError"]) for one in emails] == [
        ("signed", "sent", 1, None), ("signed", "sent", 1, None), ("deposit", "sent", 1, None),
        ("signed", "sent", 1, None),
    ]  # fmt: skip
    assert emails[3]["bookingReference"] == over_api.reference
    assert latest["nextAttemptAt"] is None
    languages = sorted(message["Content-Language"] for message in server_of_mail.messages)
    assert languages == ["ar", "ar", "en", "en"]
    assert log(with_email, status="failed") == []
    page = succeeded(with_email.http.get(f"{BACKOFFICE}/emails", params={"limit": 1}))
    after = log(with_email, cursor=page["nextCursor"])
    assert [one["id"] for one in after] == [one["id"] for one in emails[1:]]

    people = People(with_email.sql, with_email.address)
    person = people.signed_in("sales")
    seen = person.see("/backoffice/emails?status=sent")
    assert missing(seen, "omar@example.com", over_api.reference, "Deposit received") == []
    assert "E-mail is not set up" not in seen
    assert 'href="/backoffice/emails"' in person.see("/backoffice/bookings")
    assert "No e-mail here" in person.see("/backoffice/emails?status=failed")
    people.leave()


def test_without_its_settings_the_page_says_how_to_set_e_mail_up(
    with_email: Installation, server: Any, sql: Any
) -> None:
    people = People(sql, server.address)
    person = people.signed_in("viewer")
    assert missing(person.see("/backoffice/emails"), "HOLDFAST_SMTP_URL", "HOLDFAST_MAIL_FROM") == []
    for path in ("/backoffice/bookings", "/backoffice/settings"):
        assert 'href="/backoffice/emails"' not in person.see(path)
    people.leave()
