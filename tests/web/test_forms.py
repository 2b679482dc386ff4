"""Forms as browsers and others send them: fields, files, and the tokens that they carry."""

from collections.abc import Awaitable, Callable

import httpx
import pytest
from starlette.applications import Starlette

from holdfast.web.json import JsonResponse
from holdfast.web.pages.forms import (
    PUBLIC_FIELDS,
    SIGNED_IN_FIELDS,
    csrf_token,
    is_csrf_token,
    read_form,
)
from holdfast.web.request import Request
from tests.support.in_process import app_with, at, client_of

LIMIT = 3 * 1024**2
TYPE = "multipart/form-data; boundary=xyz"
END = b"--xyz--\r\n"
Post = Callable[..., Awaitable[httpx.Response]]


async def show_form(request: Request) -> JsonResponse:
    form = await read_form(request, LIMIT)
    upload = form.upload("file")
    file = upload and [upload.filename, len(upload.content), upload.content[:20].decode("latin-1")]
    return JsonResponse({"fields": form.items(), "file": file})


@pytest.fixture(scope="module")
def app() -> Starlette:
    return app_with(at("/form", show_form))


@pytest.fixture
def post(app: Starlette) -> Post:
    async def send(content: bytes, media_type: str = TYPE) -> httpx.Response:
        async with client_of(app) as client:
            return await client.post("/form", content=content, headers={"content-type": media_type})

    return send


def part(name: str, content: bytes, filename: str | None = None) -> bytes:
    named = "" if filename is None else f'; filename="{filename}"'
    head = f'--xyz\r\nContent-Disposition: form-data; name="{name}"{named}\r\n\r\n'
    return head.encode() + content + b"\r\n"


async def test_fields_and_a_file_are_read(post: Post) -> None:
    fields = part("csrf", b"abc") + part("tick", b"1") + part("tick", "٢".encode())
    answer = (await post(fields + part("file", b"a,b\r\n", "u.csv") + END)).json()
    assert answer["fields"] == [["csrf", "abc"], ["tick", "1"], ["tick", "٢"]]
    assert answer["file"] == ["u.csv", 5, "a,b\r\n"]


async def test_a_large_file_that_looks_like_the_end_of_a_form_is_read_whole(post: Post) -> None:
    content = b"\r\n--xy" * 300_000 + b"--xyz"
    answer = (await post(part("file", content, "u.csv") + END)).json()
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
async def test_a_file_has_a_name_without_a_folder(post: Post, sent: str, shown: str) -> None:
    answer = (await post(part("file", b"x", sent) + END)).json()
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
        (part("a" + ";" * 1024, b"1") + END, TYPE),
        (part("a", b"1") + END, f'{TYPE}; a="{";" * 1024}'),
    ],
    ids=[
        "no boundary",
        "no end",
        "cut off",
        "other",
        "not UTF-8",
        "NUL",
        "empty",
        "many headers",
        "long header",
        "long type",
    ],
)
async def test_what_no_browser_sends_is_refused(post: Post, body: bytes, media_type: str) -> None:
    assert (await post(body, media_type)).status_code == 400


async def test_a_form_that_is_too_large_or_has_too_many_fields_is_refused(post: Post) -> None:
    for body, media_type in (
        (part("a", b"1") * (PUBLIC_FIELDS + 1) + END, TYPE),
        (b"&".join([b"a=1"] * (SIGNED_IN_FIELDS + 1)), "application/x-www-form-urlencoded"),
        (part("file", b"x" * LIMIT, "u.csv") + END, TYPE),
    ):
        assert (await post(body, media_type)).status_code == 413


def test_tokens_of_forms_are_masked_anew_each_time() -> None:
    one, other = csrf_token("secret"), csrf_token("secret")
    assert one != other
    assert len(one) == len(other) == 128
    assert is_csrf_token(one, "secret")
    assert is_csrf_token(other, "secret")
    for wrong in ("", "x", one[:-2], one[2:], "0" * 128, csrf_token("another secret")):
        assert not is_csrf_token(wrong, "secret")
