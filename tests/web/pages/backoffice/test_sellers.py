"""The profile of the seller, as staff fill it in."""

import pytest

from tests.domain.test_seller import png
from tests.support.client import Project
from tests.support.staff_client import Person, hidden_fields, missing

TYPED = {
    "legalName": "<b>Palm</b> Court",
    "commercialRegistration": "1010 123456",
    "iban": "SA03 8000 0000 6080 1016 7519",
    "terms": "No pets.\r\n\r\nNo lions.",
}


def page_of(project: Project) -> str:
    return f"/backoffice/projects/{project.slug}/seller"


def test_sales_fill_in_the_profile_of_a_project(sales: Person, project: Project) -> None:
    page = sales.done(page_of(project), TYPED)
    stored = (
        "The seller&#39;s profile is saved.",
        "&lt;b&gt;Palm",
        'value="1010123456"',
        "No pets.\n\nNo lions.",
    )
    assert missing(page, *stored) == []
    assert f'href="{page_of(project)}"' in sales.see(f"/backoffice/projects/{project.slug}/settings")
    page = sales.refused(page_of(project), {**TYPED, "iban": "SA04", "vatNumber": "12", "email": "x"})
    assert missing(page, 'value="SA04"', "This must be an IBAN", "A VAT number has 15 digits") == []
    assert page.count('aria-invalid="true"') == 3
    assert 'value="SA0380000000608010167519"' in sales.see(page_of(project))


def test_a_line_break_of_the_terms_is_one_character(sales: Person, project: Project) -> None:
    """A browser sends two for it; the page says how many characters there may be."""
    longest = "No pets." + "\r\nx" * 4996
    assert len(longest.replace("\r\n", "\n")) == 10_000
    sales.done(page_of(project), {"terms": longest})
    sales.refused(page_of(project), {"terms": f"{longest}x"})


def test_a_logo_is_uploaded_kept_and_removed(sales: Person, project: Project) -> None:
    path = page_of(project)

    def send(content: bytes = b"", **fields: str) -> str:
        sent = sales.submit(path, fields, files={"logo": ("logo.png", content, "image/png")})
        return sent.text if sent.status_code == 422 else sales.see(path)

    assert 'src="/p/logos/' in send(png())
    assert missing(send(b"<svg/>"), "A logo is an intact PNG or JPEG", 'src="/p/logos/') == []
    assert 'src="/p/logos/' in send(legalName="Palm")
    assert 'src="/p/logos/' not in send(removeLogo="1")


def test_what_others_have_changed_meanwhile_stays(sales: Person, viewer: Person, project: Project) -> None:
    path = page_of(project)
    sales.done(path, {"phone": "920001234", "terms": "No pets.\n\nNo lions."})
    opened = hidden_fields(sales.see(path), path)
    shown = {name.removeprefix("shown-"): value for name, value in opened.items() if name != "csrf"}
    assert (shown["phone"], shown["iban"]) == ("920001234", "")
    sales.done(path, {"iban": TYPED["iban"], "shown-phone": "920001234"})
    fields = {name: value.replace("\n", "\r\n") for name, value in {**opened, **shown}.items()}
    refused = sales.refused(path, {**fields, "email": "x"})
    again = hidden_fields(refused, path)
    sales.done(path, {**fields, **again, "email": "sales@palm.example"})
    page = sales.see(path)
    stored = ('value="SA0380000000608010167519"', 'value="sales@palm.example"', "No lions.</textarea>")
    assert missing(page, *stored) == []
    assert 'name="phone" value="920001234"' not in page


@pytest.mark.parametrize("path", ["/backoffice/settings/seller", None])
def test_a_viewer_only_reads_it(viewer: Person, project: Project, path: str | None) -> None:
    page = viewer.see(path or page_of(project))
    assert "<fieldset" in page
    assert 'class="primary"' not in page.partition("<main")[2]
    viewer.see("/backoffice/projects/no-such-project/seller", 404)
