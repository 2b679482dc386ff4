"""E-mail to buyers, in the language that they signed in: plain text, HTML, and their document as a PDF.

Nothing that a buyer has typed stands in a header or in the text: anybody can type anybody's address.
"""

from __future__ import annotations

import re
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime, parseaddr
from html import unescape

from holdfast.background.emails import RenderEmail
from holdfast.domain.email import Email, EmailGivenUp, EmailKind, EmailStatus
from holdfast.operations.bookings import FoundBooking
from holdfast.operations.health import load_public_url
from holdfast.operations.sellers import Sellers
from holdfast.operations.units import Units
from holdfast.settings import Settings
from holdfast.storage.database import Database
from holdfast.web.context import buyer_link
from holdfast.web.documents.content import Kind, format_amount, format_time, isolate
from holdfast.web.documents.rendering import Documents, file_name, status_url
from holdfast.web.pages.templates import templates

# What has no meaning of its own in a header or in a command of SMTP. `email` decodes what follows "=?".
_RECIPIENT = re.compile(r"""(?!.*=\?)([^\s@<>()\[\],;:\\"]+)@([^\s@<>()\[\],;:\\"]+)""")
_ATTACHED = {EmailKind.SIGNED: Kind.AGREEMENT, EmailKind.DEPOSIT: Kind.RECEIPT}


def email_renderer(settings: Settings, database: Database) -> RenderEmail:
    units = Units(database)
    sellers = Sellers(database, units)
    documents = Documents(units, sellers, settings.public_url or "", settings.time_zone)
    name, sender = parseaddr(settings.mail_from or "")

    async def render(claimed: Email, found: FoundBooking, token: str | None) -> EmailMessage:
        booking = found.booking
        recipient = _RECIPIENT.fullmatch(booking.buyer.email if booking.buyer else "")
        if recipient is None:
            raise EmailGivenUp("E-mail cannot be sent to this address.", EmailStatus.FAILED)
        language, kind = documents.language(found), _ATTACHED.get(claimed.kind)
        public_url = settings.public_url or await load_public_url(database)
        document = await documents.build(found, kind or Kind.AGREEMENT, language)
        seller = await sellers.effective(found.project_slug)
        ends_at, deposit = booking.ends_at or found.now, booking.terms.deposit_sar
        link = status_url(public_url, found)
        if token is not None:
            link = buyer_link(public_url, found.project_slug, booking.reference, token)
        values = {"unit": found.unit_code, "project": document.project, "reference": booking.reference}
        values = {name: isolate(" ".join(value.split())) for name, value in values.items()}
        values |= {"date": language.date(ends_at), "until": format_time(ends_at, language)}
        values |= {"deposit": format_amount(deposit, language)}
        text = templates().get_template("emails/text.html").render(
            kind=claimed.kind, status=booking.status, has_deposit=bool(deposit), values=values,
            link=link, language=language, seller=seller, isolate=isolate,
        )  # fmt: skip
        subject, *paragraphs = (unescape(part.strip()) for part in re.split(r"\n{2,}", text.strip()))
        message = EmailMessage(policy=SMTP)
        subject = "".join(filter(str.isprintable, subject)).replace("=?", "= ?")
        # Between words that have to be encoded, `email` loses ordinary spaces.
        message["Subject"] = subject if subject.isascii() else subject.replace(" ", "\N{NO-BREAK SPACE}")
        message["From"] = Address(name, addr_spec=sender)
        message["To"] = Address(username=recipient[1], domain=recipient[2])
        message["Date"] = localtime(found.now)
        # The same for each attempt: a server that has the message already can tell.
        message["Message-ID"] = f"<{claimed.id}@{sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content("\n\n".join(paragraphs) + "\n")
        html = templates().get_template("emails/email.html")
        message.add_alternative(html.render(language=language, paragraphs=paragraphs), subtype="html")
        if kind is not None:
            pdf = await documents.build_pdf(found, document)
            message.add_attachment(pdf, maintype="application", subtype="pdf", filename=file_name(document))
        # Last: headers of this kind move to the parts that are added.
        message["Content-Language"] = language.code
        return message

    return render
