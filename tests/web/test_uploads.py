"""Forms with files, as browsers and others send them."""

import json

import httpx
import pytest

from holdfast.web.json import JsonResponse
from holdfast.web.pages.forms import SIGNED_IN_FIELDS, read_form
from holdfast.web.request import Request
from tests.support.in_process import app_with, at, client_of

LIMIT = 3 * 1024**2
TYPE = "multipart/form-data; boundary=xyz"


async def told(request: Request) -> JsonResponse:
    form = await read_form(request, LIMIT)
    upload = form.upload("file")
    sent = (
        None
        if upload is None
        else [upload.filename, len(upload.content), upload.content[:20].decode("latin-1")]
    )
    return JsonResponse({"fields": form.items(), "file": sent})


async def post(content: bytes, media_type: str = TYPE) -> httpx.Response:
    async with client_of(app_with(at("/form", told))) as client:
        return await client.post("/form", content=content, headers={"content-type": media_type})


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    named = "" if filename is None else f'; filename="{filename}"'
    head = f'--xyz\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"


END = b"--xyz--\r\n"


async def test_fields_and_a_file_are_read() -> None:
    body = (
        part("csrf", b"abc")
        + part("tick", b"1")
        + part("tick", "٢".encode())
        + part("file", b"a,b\r\n", "u.csv")
    )
    answer = json.loads((await post(body + END)).content)
    assert answer == {
        "fields": [["csrf", "abc"], ["tick", "1"], ["tick", "٢"]],
        "file": ["u.csv", 5, "a,b\r\n"],
    }


async def test_a_large_file_that_looks_like_the_end_of_a_form_is_read_whole() -> None:
    content = b"\r\n--xy" * 300_000 + b"--xyz"
    answer = json.loads((await post(part("file", content, "u.csv") + END)).content)
    assert answer["file"][1] == len(content)


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("C:\\\\files\\\\u.csv", "u.csv"),
        ("../../u.csv", "u.csv"),
        ("قائمة.csv", "قائمة.csv"),
        ("a\x01b" + "x" * 400, "ab" + "x" * 253),
    ],
    ids=["windows", "path", "arabic", "odd"],
)
async def test_a_file_has_a_name_without_a_folder(sent: str, shown: str) -> None:
    answer = json.loads((await post(part("file", b"x", sent) + END)).content)
    assert answer["file"][0] == shown


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (part("a", b"1") + END, "multipart/form-data"),
        (part("a", b"1"), TYPE),
        (part("a", b"1")[:20], TYPE),
        (b"nothing of the kind", TYPE),
        (part("a", b"\xff") + END, TYPE),
        (part("a", b"\x00") + END, TYPE),
        (b"", TYPE),
        (b"--xyz\r\n" + b"X-Y: z\r\n" * 100 + b"\r\n1\r\n" + END, TYPE),
    ],
    ids=["no boundary", "no end", "cut off", "other", "not UTF-8", "NUL", "empty", "many headers"],
)
async def test_what_no_browser_sends_is_refused(body: bytes, media_type: str) -> None:
    assert (await post(body, media_type)).status_code == 400


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (part("a", b"1") * (SIGNED_IN_FIELDS + 1) + END, TYPE),
        (b"&".join([b"a=1"] * (SIGNED_IN_FIELDS + 1)), "application/x-www-form-urlencoded"),
    ],
    ids=["multipart", "urlencoded"],
)
async def test_a_form_has_at_most_so_many_fields(body: bytes, media_type: str) -> None:
    assert (await post(body, media_type)).status_code == 413


async def test_a_form_is_refused_as_soon_as_it_is_too_large() -> None:
    assert (await post(part("file", b"x" * LIMIT, "u.csv") + END)).status_code == 413
