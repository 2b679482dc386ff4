"""The page with the log of e-mail to buyers, and the language of an e-mail."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import UNLIMITED
from tests.support.clusters import NEWEST
from tests.support.installation import Installation, installed
from tests.support.mail import MailServer, mail_server_in_thread
from tests.support.server import wait_until
from tests.support.staff_client import People, missing
from tests.web.pages.storefront.buyers import Buyer

SENT = "select count(*) from email where status = 'sent'"


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
    wait_until(lambda: with_email.sql.value(SENT) == 4)
    languages = sorted(message["Content-Language"] for message in server_of_mail.messages)
    assert languages == ["ar", "ar", "en", "en"]

    people = People(with_email.sql, with_email.address)
    person = people.signed_in("sales")
    seen = person.see("/backoffice/emails?status=sent")
    assert missing(seen, "omar@example.com", over_api.reference, "Deposit received") == []
    assert "E-mail is not set up" not in seen
    assert 'href="/backoffice/emails"' in person.see("/backoffice/bookings")
    assert "No e-mails" in person.see("/backoffice/emails?status=failed")
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
