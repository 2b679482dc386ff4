"""The log of e-mail to buyers."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.domain.email import EmailStatus
from holdfast.domain.permissions import Permission
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, with_query
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor, paginate

EMAILS = f"{PREFIX}/emails"
EMAILS_A_PAGE = 50


@pages.get("/emails", Permission.SEE_BOOKINGS)
async def show_emails(request: StaffRequest) -> Response:
    text = request.query.text("status")
    status = EmailStatus(text) if text in set(EmailStatus) else None
    before = request.parse_cursor(TIME_AND_ID_CURSOR)
    rows = await request.services.bookings.emails_page(before, status, EMAILS_A_PAGE)
    emails, next_cursor = paginate(rows, EMAILS_A_PAGE, creation_cursor)
    return await request.render(
        "emails.html",
        emails=emails,
        is_set_up=request.services.bookings.sends_email,
        status=status,
        tabs=[(one, with_query(EMAILS, status=one)) for one in EmailStatus],
        **request.page_links(with_query(EMAILS, status=status), next_cursor),
    )
