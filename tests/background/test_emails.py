"""E-mail to buyers: queued with the change that calls for it, and sent to a real SMTP server."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from holdfast.background.emails import EmailLoop, RenderEmail
from holdfast.background.jobs import database_jobs
from holdfast.domain.booking import Buyer
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.delivery import Schedule
from holdfast.domain.email import REMINDED_BEFORE, Email
from holdfast.domain.errors import TransitionNotAllowed
from holdfast.domain.holds import NO_LIMITS, HoldPeriods
from holdfast.domain.seller import Seller
from holdfast.domain.transitions import Caller
from holdfast.operations.bookings import Bookings, FoundBooking, Requester
from holdfast.operations.sellers import Sellers
from holdfast.operations.units import PatchUnit, Units
from holdfast.settings import Settings
from holdfast.storage import emails
from holdfast.storage.database import Database, execute_and_count
from holdfast.storage.secrets import SecretBox, new_encryption_key
from holdfast.web.emails import email_renderer
from tests.operations.interference import InterferingDatabase
from tests.operations.scene import SOMEBODY_WAITS, STAFF
from tests.support.delivery_engine import eventually
from tests.support.inventory import SLUG
from tests.support.mail import SENDER, MailServer, html_of, mail_server, subject_of, text_of
from tests.support.ports import free_port
from tests.support.receiver_certificates import authority, certified_for
from tests.support.sales import BUYER, make_lapse, new_units
from tests.support.sql import rows, value
from tests.support.staff_client import missing

PUBLIC_URL = "https://units.example.com"
LOG = "select kind, status, attempts, last_error, sealed_token is not null from email order by created_at, id"
DUE = "select count(*) from email where status = 'queued' and due_at <= clock_timestamp()"
AT_ONCE, SOON = timedelta(), Schedule(first_gap_seconds=1e-6)


@dataclass
class Post:
    """An installation with e-mail, and the server that takes it."""

    database: Database
    server: MailServer
    bookings: Bookings
    box: SecretBox
    url: str = ""
    schedule: Schedule = SOON
    lease: timedelta = timedelta(minutes=5)
    tokens: dict[str, str] = field(default_factory=dict)

    @cached_property
    def render(self) -> RenderEmail:
        settings = Settings(public_url=PUBLIC_URL, smtp_url=self.server.url, mail_from=SENDER)
        return email_renderer(settings, self.database)

    @property
    def loop(self) -> EmailLoop:
        url = self.url or self.server.url
        return EmailLoop(self.database, self.schedule, self.box, self.render, url, self.lease)

    async def claim(self) -> Email | None:
        async with self.database.writing() as connection:
            return await emails.claim(connection, self.lease)

    async def send(self) -> None:
        """Send what is due now, each once."""
        for _ in range(await value(self.database, DUE)):
            await self.loop.run_once()

    async def remind(self) -> None:
        await self.database.write(execute_and_count, emails.REMIND, REMINDED_BEFORE)

    async def held(self, code: str = "A-1") -> FoundBooking:
        held = await self.bookings.hold(SLUG, code, Requester("192.0.2.1"), None, "request-1")
        self.tokens[held.booking.reference] = held.token
        return await self.bookings.find(held.booking.reference)

    async def signed(self, code: str = "A-1", buyer: Buyer = BUYER, language: str = "en") -> FoundBooking:
        found = await self.held(code)
        reference = found.booking.reference
        await self.bookings.sign(found, buyer, "request-2", language, token=self.tokens[reference])
        return await self.bookings.find(reference)

    async def act(self, found: FoundBooking, action: BookingAction, **values: Any) -> FoundBooking:
        await self.bookings.act_on_booking(found, action, Caller.STAFF, STAFF, **values)
        return await self.bookings.find(found.booking.reference)

    async def reserved(self, code: str = "A-1", language: str = "en") -> FoundBooking:
        found = await self.signed(code, language=language)
        return await self.act(found, BookingAction.CONFIRM_DEPOSIT)

    async def log(self) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await rows(self.database, LOG)]

    async def statuses(self) -> list[str]:
        return [row[1] for row in await self.log()]


@pytest.fixture
async def post(database: Database) -> AsyncIterator[Post]:
    project_id = await new_units(database, *(f"A-{number}" for number in range(1, 9)))
    units, box = Units(database), SecretBox([new_encryption_key()])
    await units.write(PatchUnit((project_id, "A-1"), {"deposit_percent": Decimal(10)}))
    bookings = Bookings(database, units, HoldPeriods(reservation_days=3), NO_LIMITS, box)
    async with mail_server() as server:
        yield Post(database, server, bookings, box)


async def move_end(database: Database, found: FoundBooking, days: float) -> datetime:
    """Let the reservation end in so many days, as if it had been made before."""
    statement = """
        with moved as (
            update booking set reserved_until = date_trunc('milliseconds', now() + $2::interval)
            where reference = $1 returning unit_id, reserved_until
        )
        update unit set reserved_until = moved.reserved_until, turn = turn + 1 from moved where id = unit_id
        returning moved.reserved_until
    """
    end = await value(database, statement, found.booking.reference, timedelta(days=days))
    assert isinstance(end, datetime)
    return end


@pytest.mark.parametrize(
    ("language", "subject", "sentence", "contact"),
    [
        (
            "en",
            "Agreement signed: unit A-1, Palm Court",
            "The agreement is attached.",
            ("(Arabian Standard Time)", "\u2068Palm Homes\u2069"),
        ),
        (
            "ar",
            "تم توقيع الاتفاقية: الوحدة A-1، Palm Court",
            "تجد الاتفاقية مرفقة بهذه الرسالة.",
            ("(التوقيت العربي الرسمي)", "\u2068بيوت النخيل\u2069"),
        ),
    ],
)
async def test_a_buyer_who_signs_gets_the_link_and_the_agreement_in_their_language(
    post: Post, language: str, subject: str, sentence: str, contact: tuple[str, ...]
) -> None:
    seller = Seller(
        "Palm Homes | بيوت النخيل", phone="+966 11 555 0100", whatsapp="+966555", email="sales@palm.example"
    )
    await Sellers(post.database, Units(post.database)).settle(None, seller.set_fields, STAFF)
    found = await post.signed(language=language)
    assert await post.log() == [("signed", "queued", 0, None, True)]
    await post.send()
    (message,) = post.server.messages
    reference = found.booking.reference
    link = f"{PUBLIC_URL}/p/{SLUG}/bookings/{reference}/{post.tokens[reference]}"
    assert (subject_of(message), message["To"], message["From"]) == (subject, BUYER.email, SENDER)
    assert message["Content-Language"] == language
    assert message["Auto-Submitted"] == "auto-generated"
    for text in (text_of(message), html_of(message)):
        assert link in text
        assert sentence in text
        assert missing(text, "https://wa.me/966555", "+966 11 555 0100", "sales@palm.example", *contact) == []
    assert f'dir="{"rtl" if language == "ar" else "ltr"}"' in html_of(message)
    (attached,) = message.iter_attachments()
    assert attached.get_filename() == f"holdfast-agreement-{reference}.pdf"
    assert attached.get_content().startswith(b"%PDF")
    assert await post.log() == [("signed", "sent", 1, None, False)], "the token is erased"


@pytest.mark.parametrize(
    ("language", "deposit", "reminder"),
    [
        ("en", "Deposit received: unit A-1, Palm Court", "Your reservation ends on "),
        ("ar", "تم استلام مبلغ الحجز: الوحدة A-1، Palm Court", "ينتهي حجزك في "),
    ],
)
async def test_a_confirmed_deposit_is_receipted_and_the_end_of_the_reservation_is_recalled(
    post: Post, language: str, deposit: str, reminder: str
) -> None:
    found = await post.reserved(language=language)
    await move_end(post.database, found, 2.5)
    await post.remind()
    await post.send()
    assert len(post.server.messages) == 2, "too soon for a reminder"
    receipt = next(one for one in post.server.messages if subject_of(one) == deposit)
    (attached,) = receipt.iter_attachments()
    assert attached.get_filename() == f"holdfast-receipt-{found.booking.reference}.pdf"
    assert f"{PUBLIC_URL}/p/{SLUG}/bookings/{found.booking.reference}" in text_of(receipt).splitlines()

    moved = (
        "update booking set deposit_confirmed_at = deposit_confirmed_at - interval '1 day' returning number"
    )
    await value(post.database, moved)
    await move_end(post.database, found, 1.5)
    for _ in range(2):
        await post.remind()
        await post.send()
    assert [subject_of(message).startswith(reminder) for message in post.server.messages] == [
        False, False, True,
    ], "one for each end"  # fmt: skip
    found = await post.bookings.find(found.booking.reference)
    assert found.booking.reserved_until is not None
    later = found.booking.reserved_until + timedelta(hours=6)
    await post.act(found, BookingAction.EXTEND, until=later)
    await post.remind()
    await post.send()
    assert subject_of(post.server.messages[3]).startswith(reminder)
    assert await post.statuses() == ["sent"] * 4


async def test_a_reservation_of_two_days_at_most_has_no_reminder(post: Post) -> None:
    post.bookings.periods = HoldPeriods(reservation_days=2)
    await post.reserved()
    await post.remind()
    assert [row[0] for row in await post.log()] == ["signed", "deposit"]


async def test_reminders_are_written_only_where_e_mail_is_set_up(post: Post) -> None:
    set_up = Settings(smtp_url=post.server.url, mail_from=SENDER)
    names = [[job.name for job in database_jobs(post.database, one)] for one in (set_up, Settings())]
    assert ["reminders" in each for each in names] == [True, False]


async def test_a_reminder_that_is_no_longer_true_is_not_sent(post: Post) -> None:
    found = await post.reserved()
    moved = (
        "update booking set deposit_confirmed_at = deposit_confirmed_at - interval '3 days' returning number"
    )
    await value(post.database, moved)
    await move_end(post.database, found, 1)
    await post.remind()
    await post.act(await post.bookings.find(found.booking.reference), BookingAction.CANCEL)
    await post.send()
    assert (await post.log())[2][:2] == ("reminder", "suppressed")
    assert len(post.server.messages) == 2


async def test_money_that_comes_too_late_is_receipted_with_what_becomes_of_it(post: Post) -> None:
    found = await post.signed()
    await make_lapse(post.database, found.booking)
    await post.held()
    await post.act(found, BookingAction.CONFIRM_DEPOSIT)
    await post.send()
    texts = [text_of(message) for message in post.server.messages]
    assert any("Your booking has ended, so the seller will refund your deposit." in text for text in texts)


async def test_a_reservation_without_a_deposit_that_is_over_is_not_confirmed(post: Post) -> None:
    found = await post.signed("A-2")
    await make_lapse(post.database, found.booking)
    await post.held("A-2")
    await post.act(found, BookingAction.CONFIRM_DEPOSIT)
    await post.send()
    assert sorted(row[:2] for row in await post.log()) == [("deposit", "suppressed"), ("signed", "sent")]


async def test_what_was_sent_is_known_for_two_days_even_if_the_log_is_kept_for_less(post: Post) -> None:
    settings = Settings(delivery_retention_days=0.1)
    (trimming,) = (job for job in database_jobs(post.database, settings) if job.name == "e-mail trimming")
    await post.signed()
    for hours, trimmed in ((47, 0), (2, 1)):
        older = "update email set created_at = created_at - $1::interval returning 1"
        await value(post.database, older, timedelta(hours=hours))
        assert await trimming.run() == trimmed


async def test_nothing_is_queued_when_the_change_is_not_stored_or_changes_nothing(post: Post) -> None:
    found = await post.held()

    async def cancel() -> None:
        await post.act(found, BookingAction.CANCEL)

    token = post.tokens[found.booking.reference]
    overtaken = Units(InterferingDatabase(post.database, cancel))
    bookings = Bookings(post.database, overtaken, HoldPeriods(), NO_LIMITS, post.box)
    with pytest.raises(TransitionNotAllowed):
        await bookings.sign(found, BUYER, "request-2", token=token)
    assert await post.log() == []
    found = await post.held()
    token = post.tokens[found.booking.reference]
    for _ in range(2):
        await post.bookings.sign(found, BUYER, "request-2", token=token)
    for _ in range(2):
        await post.act(found, BookingAction.CONFIRM_DEPOSIT)
    assert [row[0] for row in await post.log()] == ["signed", "deposit"]


async def test_e_mail_is_no_event_and_no_delivery_and_there_is_none_without_its_settings(post: Post) -> None:
    await post.reserved()
    events = "select array_agg(type order by unit_version) from event"
    assert await value(post.database, events) == ["unit.held", "unit.reserved"]
    assert await value(post.database, "select count(*) from pending_delivery") == 0
    without = Bookings(post.database, Units(post.database), HoldPeriods(), NO_LIMITS)
    held = await without.hold(SLUG, "A-2", Requester("192.0.2.1"), None, "request-1")
    found = await without.find(held.booking.reference)
    await without.sign(found, BUYER, "request-2", token=held.token)
    await without.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.STAFF, STAFF)
    assert len(await post.log()) == 2


async def test_a_temporary_rejection_and_a_refused_connection_are_retried(post: Post) -> None:
    await post.signed()
    post.server.answers = ["451 Try again later"]
    await post.send()
    assert await post.log() == [("signed", "queued", 1, "451 Try again later", True)]
    post.url = f"smtp://127.0.0.1:{free_port()}"
    await post.send()
    ((_, status, attempts, error, _),) = await post.log()
    assert (status, attempts) == ("queued", 2)
    assert "Error connecting to 127.0.0.1" in error
    post.url = ""
    await post.send()
    assert await post.log() == [("signed", "sent", 3, None, False)]
    assert len(post.server.messages) == 1


async def test_the_last_attempt_of_the_schedule_is_the_end(post: Post) -> None:
    post.schedule = Schedule(first_gap_seconds=1e-6, attempts=2)
    await post.signed()
    post.server.answers = ["451 Try again later"] * 2
    for _ in range(3):
        await post.send()
    assert await post.log() == [("signed", "failed", 2, "451 Try again later", False)]


async def test_a_retry_waits_as_a_delivery_does(post: Post) -> None:
    post.schedule = Schedule()
    await post.signed()
    post.server.answers = ["451 Try again later"]
    for _ in range(2):
        await post.send()
    assert (await post.log())[0][2] == 1
    gap = await value(post.database, "select due_at >= created_at + interval '30 seconds' from email")
    assert gap is True


async def test_a_recipient_who_is_rejected_for_good_is_not_tried_again(post: Post) -> None:
    await post.signed()
    post.server.answers = [f"550 5.1.1 <{BUYER.email}>: no such user"]
    for _ in range(2):
        await post.send()
    assert await post.log() == [("signed", "failed", 1, "550 5.1.1 <…>: no such user", False)], "no address"


async def test_an_answer_that_is_no_utf_8_is_kept_as_far_as_it_can_be_read(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def push(self: SMTP, status: str | bytes) -> None:
        answer = status if isinstance(status, bytes) else status.encode("latin-1")
        self._writer.write(answer + b"\r\n")
        await self._writer.drain()

    monkeypatch.setattr(SMTP, "push", push)
    await post.signed()
    post.server.answers = ["550 5.1.1 Empfänger unbekannt"]
    await post.send()
    assert await post.log() == [("signed", "failed", 1, "550 5.1.1 Empf?nger unbekannt", False)]


async def test_words_of_a_subject_in_two_scripts_stay_apart(post: Post) -> None:
    project = "North Tower, أبراج الواحة"
    await value(post.database, "update project set name = $1, turn = turn + 1 returning 1", project)
    await post.signed()
    await post.send()
    (message,) = post.server.messages
    assert subject_of(message) == f"Agreement signed: unit A-1, {project}"


async def test_what_a_worker_leaves_behind_goes_out_again_as_the_same_message(post: Post) -> None:
    await post.signed()
    post.lease = AT_ONCE
    first = await post.claim()
    assert first is not None
    await post.send()
    post.lease = timedelta(minutes=5)
    assert await post.statuses() == ["sent"]

    await post.loop.attempt(first)
    assert len({message["Message-ID"] for message in post.server.messages}) == 1
    assert await post.log() == [("signed", "sent", 2, None, False)], "the late worker records nothing"


async def test_another_worker_does_not_claim_what_one_is_sending(post: Post) -> None:
    await post.signed()
    assert await post.claim() is not None
    assert await post.claim() is None


async def test_an_e_mail_that_ends_its_worker_each_time_is_given_up(post: Post) -> None:
    post.schedule, post.lease = Schedule(1e-6, attempts=2), AT_ONCE
    await post.signed()
    for _ in range(2):
        assert await post.claim() is not None
    await post.send()
    ((_, status, _, error, _),) = await post.log()
    assert (status, "not known" in error) == ("failed", True)


async def test_a_mailbox_gets_five_e_mails_a_day_before_a_deposit(post: Post) -> None:
    spellings = ("nora@example.com", "Nora@Example.com", "nora+flats@example.com", "n.o.r.a@example.com")
    for number in range(1, 7):
        await post.signed(f"A-{number}", BUYER._replace(email=spellings[number % 4]))
    await post.signed("A-7", BUYER._replace(email="omar@example.com"))
    await post.send()
    assert await post.statuses() == [*["sent"] * 5, "suppressed", "sent"]
    assert "without a deposit" in (await post.log())[5][3]
    assert len(post.server.messages) == 6
    # A deposit shows that the buyer is real: the e-mail about that booking does not count any more.
    first = (await rows(post.database, "select reference from booking order by number limit 1"))[0][0]
    await post.act(await post.bookings.find(first), BookingAction.CONFIRM_DEPOSIT)
    await post.signed("A-8")
    await post.send()
    assert (await post.statuses())[7:] == ["sent", "sent"]


async def test_e_mail_that_waited_for_a_day_counts_from_when_it_is_sent(post: Post) -> None:
    for number in range(1, 7):
        await post.signed(f"A-{number}")
    waited = "with kept as (update email set created_at = created_at - interval '2 days') select 1"
    await value(post.database, waited)
    await post.send()
    assert sorted(await post.statuses()) == [*["sent"] * 5, "suppressed"]
    old = "with kept as (update email set due_at = due_at - interval '25 hours') select 1"
    await value(post.database, old)
    await post.signed("A-7")
    await post.send()
    assert (await post.statuses())[-1] == "sent"


@pytest.mark.parametrize("is_locked", [True, False])
async def test_workers_that_claim_at_once_count_what_the_others_have_claimed(
    post: Post, monkeypatch: pytest.MonkeyPatch, is_locked: bool
) -> None:
    for number in range(1, 7):
        await post.signed(f"A-{number}")
    for _ in range(4):
        await post.claim()
    if not is_locked:
        monkeypatch.setattr(emails, "_LOCK", "select 1")
    async with post.database.writing() as connection:
        fifth = await emails.claim(connection, post.lease)
        claiming = asyncio.create_task(post.claim())
        await eventually(lambda: claiming.done() or value(post.database, SOMEBODY_WAITS))
    sixth = await claiming
    assert [None if one is None else one.is_over_limit for one in (fifth, sixth)] == [False, is_locked]


async def test_a_link_that_was_replaced_and_a_buyer_who_was_erased_get_nothing(post: Post) -> None:
    await post.bookings.reissue_link(await post.signed("A-1"), STAFF)
    gone = await post.act(await post.signed("A-2"), BookingAction.CANCEL)
    await post.act(gone, BookingAction.ERASE_BUYER)
    await post.send()
    assert [(row[1], row[4]) for row in await post.log()] == [("suppressed", False)] * 2
    assert post.server.messages == []


@pytest.mark.parametrize(
    "address",
    [
        "nora@example.com,omar@example.com", "nora@b>,<example.com", "a@b.com;c", '"a"@example.com',
        "=?utf-8?q?x=0D=0ABcc=3Aomar=40example.com=0D=0A=0D=0APay_here?=@example.com",
        "nora@=?utf-8?q?example.com=0D=0ABcc=3Aomar=40example.com?=",
    ],
)  # fmt: skip
async def test_an_address_that_would_be_more_than_one_is_not_sent_to(post: Post, address: str) -> None:
    await post.signed(buyer=BUYER._replace(email=address))
    await post.send()
    assert await post.statuses() == ["failed"]
    assert post.server.messages == []


@pytest.mark.parametrize(
    "project",
    ["Palm\r\nBcc: x@evil.example\nCourt", "=?utf-8?q?x=0D=0ABcc=3Ax=40evil.eg?="],
)
async def test_no_text_of_the_buyer_stands_in_a_header_or_in_the_text(post: Post, project: str) -> None:
    name = "Win a prize at https://evil.example"
    await value(post.database, "update project set name = $1, turn = turn + 1 returning 1", project)
    await post.signed(buyer=BUYER._replace(name=name))
    await post.send()
    (message,) = post.server.messages
    assert post.server.recipients == [[BUYER.email]]
    assert message["Bcc"] is None
    assert "\n" not in message["Subject"]
    assert name not in text_of(message) + html_of(message) + str(message.items())


async def test_starttls_is_used_where_it_is_offered_and_the_certificate_is_checked(
    post: Post, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sign_in(*arguments: Any) -> AuthResult:
        login = arguments[-1]
        return AuthResult(success=(login.login, login.password) == (b"user@example.com", b"p:w"))

    await post.signed()
    options = {"require_starttls": True, "auth_required": True, "authenticator": sign_in}
    tls_context = certified_for("127.0.0.2")
    async with mail_server("127.0.0.2", tls_context=tls_context, **options) as server:
        post.url = server.url.replace("//", "//user%40example.com:p%3Aw@")
        await post.send()
        ((_, status, _, error, _),) = await post.log()
        assert status == "queued"
        assert "CERTIFICATE_VERIFY_FAILED" in error
        authorities = tmp_path / "authorities.pem"
        authority().cert_pem.write_to_path(authorities)
        monkeypatch.setenv("SSL_CERT_FILE", str(authorities))
        await post.send()
        assert await post.statuses() == ["sent"]
        assert len(server.messages) == 1


async def test_a_password_is_not_sent_without_tls_except_to_this_machine(post: Post) -> None:
    await post.signed()
    signed_in: list[Any] = []

    def sign_in(*arguments: Any) -> AuthResult:
        signed_in.append(arguments)
        return AuthResult(success=True)

    # As Debian's Postfix, it offers TLS with a certificate of its own making: here that is not checked.
    tls_context = certified_for("mail.example.com")
    async with mail_server(authenticator=sign_in, tls_context=tls_context, auth_require_tls=False) as server:
        post.url = server.url.replace("//", "//user:secret@")
        await post.send()
        assert await post.statuses() == ["sent"]
        assert len(signed_in) == 1
    await post.signed("A-2")
    async with mail_server(auth_require_tls=False, authenticator=sign_in) as server:
        post.url = server.url.replace("//127.0.0.1", "//user:secret@127.1")
        await post.send()
        *_, (_, status, _, error, _) = await post.log()
        assert (status, len(signed_in)) == ("queued", 1)
        assert "STARTTLS" in error
