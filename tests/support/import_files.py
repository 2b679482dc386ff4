"""Files of units, as staff bring them in on the pages of the import."""

import re
from urllib.parse import urlsplit

import httpx

from tests.support.client import Project
from tests.support.staff_client import Person


def import_path(project: Project, rest: str = "") -> str:
    return f"/backoffice/projects/{project.slug}/import{rest}"


def send_file(person: Person, project: Project, content: bytes, name: str = "units.csv") -> httpx.Response:
    return person.submit(import_path(project), files={"file": (name, content)})


def uploaded(person: Person, project: Project, text: str) -> str:
    """The address of the file."""
    answer = send_file(person, project, text.encode())
    assert answer.status_code == 303, answer.text
    return urlsplit(answer.headers["location"]).path


def chosen(page: str) -> dict[str, str]:
    """The form of the columns, as it stands on its page."""
    fields = dict(re.findall(r'<input type="hidden" name="(sheet|heading)" value="(\d+)"', page)[-2:])
    for name, options in re.findall(
        r'<select id="f-column\d+" name="(column\d+)"[^>]*>(.*?)</select>', page, re.DOTALL
    ):
        found = re.search(r'value="(\w*)" selected', options)
        fields[name] = found[1] if found else ""
    ticked = re.findall(r'type="radio" name="(\w+)" value="([^"]+)" checked', page)
    return fields | dict(ticked)


def checked(person: Person, project: Project, text: str, **changed: str) -> tuple[str, str]:
    """The address of the file, and the page that tells what it would do."""
    address = uploaded(person, project, text)
    return address, person.done(f"{address}/check", {**chosen(person.see(address)), **changed})


def tiles(page: str) -> dict[str, str]:
    return {word: count for count, word in re.findall(r"<strong>([\d,]+)</strong><span>(\w+)</span>", page)}


def refused_rows(page: str) -> list[tuple[str, ...]]:
    """Row, code, column, cell and reason of each that is told."""
    rows = re.findall(r'<tr><th scope="row" class="number row"(.*?)</tr>', page, re.DOTALL)
    cells = [re.findall(r"(?:data-label=[^>]*>)(.*?)</t[dh]>", row, re.DOTALL) for row in rows]
    return [tuple(re.sub(r"<[^>]+>", "", cell).strip() for cell in row) for row in cells]


def commit(person: Person, address: str) -> str:
    """The button of the page at this address; the page after it."""
    seen = re.search(r'name="seen" value="([^"]+)"', person.see(address))
    assert seen is not None
    return person.done(f"{address}/commit", {"seen": seen[1]})
