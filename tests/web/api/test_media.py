"""Images and files: what an element may be, and that it comes back as it was sent."""

import pytest

from tests.support.bodies import full, minimal
from tests.support.client import Unit, exact
from tests.support.problems import invalid

URL = "https://media.example/a.jpg"


@pytest.mark.parametrize(
    "url",
    [
        "http://[::1",
        "https://media.example:port/a",
        "https://exa mple/a",
        "https://media.example/a\nb",
        " https://media.example/a",
        "https://media.example/a ",
        "http:media.example",
        "https://?a",
        "https://#a",
        "https://:80/",
        "https://user@/",
    ],
)
def test_an_address_that_is_none_is_refused(unit: Unit, url: str) -> None:
    invalid(unit.put(minimal(images=[url], files=[{"url": url}])), "/images/0", "/files/0/url")


@pytest.mark.parametrize(
    "url",
    [
        "HTTPS://MEDIA.EXAMPLE/A.JPG",
        "http://localhost:8080/a?b=c#d",
        "https://[2001:db8::1]/a",
        "https://media.example/%D9%85?x=%20",
        "https://media.example/" + "a" * 2000,
        "https://مثال.example/صورة.jpg",
    ],
)
def test_an_address_comes_back_as_it_was_sent(unit: Unit, url: str) -> None:
    assert unit.create(minimal(images=[url, {"url": url}]))["images"] == [url, {"url": url}]


def test_the_order_of_names_in_an_object_is_no_difference(stored: Unit) -> None:
    stored.put(full(images=[{"url": URL, "name": "Plan"}]))
    before = stored.get()
    after = stored.put(full(images=[{"name": "Plan", "url": URL}]))
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])


def test_the_order_of_media_is_a_difference(stored: Unit) -> None:
    etag = stored.etag
    assert stored.put(full(images=full()["images"][::-1])).headers["etag"] != etag


def test_a_url_and_an_object_with_that_url_are_different(stored: Unit) -> None:
    stored.put(full(images=[URL]))
    assert exact(stored.put(full(images=[{"url": URL}])))["images"] == [{"url": URL}]
