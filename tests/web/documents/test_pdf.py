"""The PDFs: what they say, how they are marked, and that nothing in them is taken for an instruction."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.web.documents.content import Document, Kind
from holdfast.web.documents.rendering import PdfRenderer
from tests.domain.test_seller import JPEG, logo_of, png
from tests.web.documents.reading import embedded_fonts, fonts_of, fonts_on_pages, letters_of, read, text_of
from tests.web.documents.subjects import (
    ADDRESS,
    AGREEMENT,
    NORA,
    NOURA,
    REFERENCE,
    SELLER,
    a_booking,
    a_document,
)

Pdf = Callable[[Document], Awaitable[bytes]]
OURS = {"Inter-Regular", "Inter-SemiBold", "IBMPlexSansArabic", "IBMPlexSansArabic-SmBld"}
LANGUAGES = ("en", "ar")


@pytest.fixture(scope="module")
def renderer() -> PdfRenderer:
    return PdfRenderer()


@pytest.fixture
def pdf(renderer: PdfRenderer) -> Pdf:
    return lambda document: renderer.render(document, ADDRESS)


def is_archivable(made: bytes) -> bool:
    return b"pdfaid:part" in made


async def test_the_agreement_names_parties_unit_price_and_reference(pdf: Pdf) -> None:
    text = text_of(await pdf(a_document()))
    for part in (
        REFERENCE, "Narjis Heights", "Nora Al-Harbi", "nora@example.com", "+966 50 123 4567", "A-1203",
        "Apartment", "142.5 m²", "SAR 1,299,000.00", "SAR 64,950.00 (5%, added to the price)",
        "SAR 1,363,950.00", "SAR 136,395.00 (10% of the total)", "SAR 1,227,555.00",
        "16 November 2026, 10:32:12 (Arabian Standard Time)", "we refund the whole deposit to you",
    ):  # fmt: skip
        assert part in text


async def test_the_arabic_agreement_says_the_same_in_arabic(pdf: Pdf) -> None:
    text = text_of(await pdf(a_document(code="ar", booking=a_booking(buyer=NOURA))))
    for part in (
        REFERENCE, "noura@example.com", "+966 50 123 4567", "A-1203", "1,299,000.00", "1,363,950.00",
        "136,395.00", "1,227,555.00", "10:32:12",
    ):  # fmt: skip
        assert part in text
    for word in ("المشتري", "مبلغ", "مرتفعات", "عبدالله", "السعودية", "شقة"):
        assert word in text
    assert "Narjis" not in text
    assert "Apartment" not in text
    assert not set(letters_of(NOURA.name)) - set(letters_of(text))


async def test_the_receipt_names_what_was_paid_and_what_is_left(pdf: Pdf) -> None:
    text = text_of(await pdf(a_document(Kind.RECEIPT)))
    for part in (
        REFERENCE, "Amount received SAR 136,395.00", "pay_7Hk29", "Received from Nora Al-Harbi",
        "16 November 2026, 10:34:12 (Arabian Standard Time)", "reserved until 30 November 2026",
        "Balance due SAR 1,227,555.00", "not a tax invoice",
    ):  # fmt: skip
        assert part in text


@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize(("kind", "pages"), [(Kind.AGREEMENT, 2), (Kind.RECEIPT, 1)])
async def test_pages_are_numbered_and_have_our_own_fonts_alone_and_whole(
    pdf: Pdf, kind: Kind, pages: int, code: str
) -> None:
    made = await pdf(a_document(kind, code, a_booking(buyer=NOURA)))
    assert fonts_of(made) <= OURS
    assert embedded_fonts(made) == len(fonts_on_pages(made))
    feet = [page.extract_text()[-60:] for page in read(made).pages]
    assert len(feet) == pages
    for number, foot in enumerate(feet, 1):
        assert all(part in foot for part in (REFERENCE, str(number), str(pages)))


@pytest.mark.parametrize(("code", "direction"), [("en", "/L2R"), ("ar", "/R2L")])
async def test_a_pdf_says_what_it_is_and_how_it_is_read(pdf: Pdf, code: str, direction: str) -> None:
    made = await pdf(a_document(code=code))
    read_back = read(made)
    root: Any = read_back.trailer["/Root"]
    about = read_back.metadata
    assert about is not None
    assert REFERENCE in str(about.title)
    assert about.author == {"en": "Narjis Heights", "ar": "مرتفعات النرجس"}[code]
    assert about.creation_date == a_booking().signed_at
    assert root["/Lang"] == code
    assert root["/MarkInfo"]["/Marked"].value is True
    assert root["/ViewerPreferences"]["/Direction"] == direction
    assert "/StructTreeRoot" in root
    assert is_archivable(made)


HOSTILE = (
    "#panic()", "$x$", "*bold* _it_", '"; #let x = 1', "= Heading", "\\u{41}", "#read(\"/etc/passwd\")",
    "{project}", "%(amount)s", "@label <label>", "// no comment", "`raw`", "# Clause", "{0}",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [HOSTILE[0], *(pytest.param(one, marks=pytest.mark.slow) for one in HOSTILE[1:])]
)
async def test_a_name_is_a_name_whatever_it_looks_like(pdf: Pdf, name: str) -> None:
    buyer = NORA._replace(name=name)
    agreement = AGREEMENT._replace(project_name=name, unit_type=name)
    text = text_of(await pdf(a_document(booking=a_booking(buyer=buyer), agreement=agreement)))
    assert f"Signed electronically by {name} Signed at" in text
    assert f"Seller The seller of {name} Buyer {name} E-mail" in text
    assert f"Type {name} Area" in text


async def test_letters_that_no_font_of_ours_has_do_not_stop_a_paper(pdf: Pdf) -> None:
    made = await pdf(a_document(booking=a_booking(buyer=NORA._replace(name="陈美玲 Chen 😀 नोरा"))))
    assert fonts_of(made) <= OURS
    assert "Chen" in text_of(made)
    assert not is_archivable(made)


async def test_names_in_other_letters_are_written(pdf: Pdf) -> None:
    name = "Нора Харбина, Νόρα, Nguyễn Thị Ánh, Żółć, نورا پژمان"
    assert is_archivable(await pdf(a_document(booking=a_booking(buyer=NORA._replace(name=name)))))


async def test_the_longest_names_find_room(pdf: Pdf) -> None:
    long = "W" * 200
    buyer = NORA._replace(name=long, email=f"{'w' * 240}@example.com", phone="0" * 50)
    made = await pdf(a_document(booking=a_booking(buyer=buyer, payment_id="p" * 200)))
    assert text_of(made).replace(" ", "").count("W") >= 400


async def test_the_same_facts_give_the_same_bytes_and_a_recent_paper_is_not_made_again(
    renderer: PdfRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a renderer that has made nothing before, as another process has."""
    document = a_document(Kind.RECEIPT, "ar")
    made = await renderer.render(document, ADDRESS)
    assert await PdfRenderer().render(document, ADDRESS) == made
    monkeypatch.setattr(renderer, "_compiler", None)
    monkeypatch.setattr("typst.Compiler", lambda *_, **__: pytest.fail("It was made again."))
    assert await renderer.render(document, ADDRESS) == made


@pytest.mark.slow
@pytest.mark.parametrize("code", LANGUAGES)
@pytest.mark.parametrize("status", sorted(set(BookingStatus) - {BookingStatus.OPEN}))
async def test_there_is_a_pdf_in_every_state(pdf: Pdf, status: BookingStatus, code: str) -> None:
    for kind in Kind:
        booking = a_booking(status)
        if kind is Kind.AGREEMENT or booking.deposit_confirmed_at is not None:
            assert REFERENCE in text_of(await pdf(a_document(kind, code, booking)))


async def test_without_a_public_address_there_is_no_code_to_scan(renderer: PdfRenderer) -> None:
    assert "Scan" not in text_of(await renderer.render(a_document(), None))


@pytest.mark.parametrize(
    "content", [png(), png()[:50] + png()[-12:], JPEG], ids=["whole", "without its middle", "without pixels"]
)
async def test_a_logo_stands_at_the_top_and_a_broken_one_prevents_nothing(
    renderer: PdfRenderer, content: bytes
) -> None:
    logo = logo_of(content)
    assert logo is not None
    document = a_document(agreement=AGREEMENT._replace(seller=SELLER._replace(logo=logo[0])))
    made = await renderer.render(document, ADDRESS, logo[1])
    assert "Palm Court Company" in text_of(made)
    assert is_archivable(made)
    assert (b"/Width 3" in made) == (content == png())
