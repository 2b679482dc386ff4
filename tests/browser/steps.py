"""How to come to pages that follow upon a form; in no language, since they are looked at in each."""

from uuid import UUID

from playwright.sync_api import Page, expect

from tests.browser.scene import Scene
from tests.browser.staff import PASSWORD
from tests.support.chromium import beside_playwright

SHEET = """code,type,area,price,bedrooms
A-0101,Studio,46.5,455000,0
A-0104,3-bedroom apartment,148.6,about a million,3
C-{number},2-bedroom apartment,112.8,990000,2
C-0102,2-bedroom apartment,-112.8,990000,2
,Studio,46.5,455000,0
"""
"""One unit changed, one new, three rows that cannot be taken."""
INTERRUPT = "update import_file set stage = 'importing', beat_at = now() - interval '1 minute' where id = $1"


def give_the_password(page: Page, scene: Scene) -> None:
    page.fill("[name=email]", scene.with_factor.email)
    page.fill("[name=password]", PASSWORD)
    page.click("main form button.primary")
    expect(page.locator("[name=code]")).to_be_visible()


def fail_to_sign_in(page: Page, _: Scene) -> None:
    page.fill("[name=email]", "nobody@narjis.example")
    page.fill("[name=password]", PASSWORD)
    page.click("main form button.primary")
    expect(page.locator("[role=alert]")).to_be_visible()


def set_up_a_factor(page: Page, _: Scene) -> None:
    if page.locator("svg.qr").count() == 0:
        page.fill("#f-proof", PASSWORD)
        page.click("form[action$=second-factor] button")
    expect(page.locator("svg.qr")).to_be_visible()


def show_how_to_remove_a_factor(page: Page, _: Scene) -> None:
    page.click("#second-factor summary")
    expect(page.locator("#second-factor [name=code]")).to_be_visible()


def make_a_key(page: Page, _: Scene) -> None:
    page.fill("main [name=name]", "Nightly sync of the ERP")
    page.click("main form button.primary")
    expect(page.locator(".once")).to_be_visible()


def register_an_endpoint(page: Page, scene: Scene) -> None:
    """For a project in which nothing happens, so that nothing is sent to it."""
    page.fill("main [name=url]", f"https://erp.example.com/hooks/{scene.next_number()}")
    page.check("main [name=reach][value=some]")
    page.check(f"main [name=project][value={scene.elsewhere.slug}]")
    page.click("main form button.primary")
    expect(page.locator(".once")).to_be_visible()


def invite_somebody(page: Page, scene: Scene) -> None:
    page.fill("main [name=email]", f"invited-{scene.next_number()}@narjis.example")
    page.fill("main [name=name]", "Omar Haddad")
    page.click("main form button.primary")
    expect(page.locator(".once")).to_be_visible()


def upload_a_file(page: Page, scene: Scene) -> None:
    """With a unit that no file had before: what is there already need not be imported."""
    sheet = SHEET.format(number=scene.next_number())
    page.set_input_files(
        "[name=file]", {"name": "units.csv", "mimeType": "text/csv", "buffer": sheet.encode()}
    )
    page.click("[data-upload] button.primary")
    expect(page.locator("[name=column0]")).to_be_visible()


def check_the_file(page: Page, scene: Scene) -> None:
    upload_a_file(page, scene)
    page.click("main form[method=post] button.primary")
    expect(page.locator("nav.tiles")).to_be_visible()


def import_the_file(page: Page, scene: Scene) -> None:
    check_the_file(page, scene)
    page.click("form[action$='/commit'] button")
    expect(page.locator(".tile").first).to_be_visible()
    expect(page.locator("form[action$='/commit']")).to_have_count(0)


def find_the_import_interrupted(page: Page, scene: Scene) -> None:
    check_the_file(page, scene)
    with beside_playwright():
        scene.office.sql.execute(INTERRUPT, UUID(page.url.rpartition("/")[2].partition("?")[0]))
    page.reload()
    expect(page.locator("progress")).to_be_visible()


def rotate_the_secret(page: Page, _: Scene) -> None:
    _unfold(page, "/rotate")
    expect(page.locator(".once")).to_be_visible()


def send_a_ping(page: Page, _: Scene) -> None:
    page.click("form[action$='/ping'] button")
    expect(page.locator("#ping")).to_be_visible()


def make_a_new_link(page: Page, _: Scene) -> None:
    _unfold(page, "/reissue-link")
    expect(page.locator(".once")).to_be_visible()


def _unfold(page: Page, action: str) -> None:
    """What asks first."""
    asks = page.locator("details").filter(has=page.locator(f"form[action$='{action}']"))
    asks.locator("summary").click()
    asks.locator("form button:not([data-close])").first.click()


def ask_before_the_hold_ends(page: Page, _: Scene) -> None:
    page.locator("#unit-panel details.asks > summary.danger").first.click()
    expect(page.locator("details.asks[open] form")).to_be_visible()


def send_a_bad_walk_in(page: Page, _: Scene) -> None:
    asks = page.locator("#unit-panel details.asks").filter(has=page.locator("[name=buyerName]"))
    asks.locator("summary").click()
    for name in ("buyerName", "buyerEmail", "buyerPhone"):
        asks.locator(f"[name={name}]").fill("x@" if name == "buyerEmail" else "x")
    asks.locator("form").evaluate("form => { form.noValidate = true; }")
    asks.locator("button.primary").click()
    expect(page.locator("[aria-invalid=true]").first).to_be_visible()
