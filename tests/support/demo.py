"""A real `serve --demo`, and a buyer who goes through its pages as a browser without a script does."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support import server as servers

PATIENCE_SECONDS = 30
BUYER = {
    "buyerName": "Nora Al-Harbi",
    "buyerEmail": "nora@example.com",
    "buyerPhone": "+966 50 123 4567",
    "consent": "yes",
}
_FORM = re.compile(r'<form[^>]*action="(?P<path>[^"]+)"[^>]*>(?P<inside>.*?)</form>', re.DOTALL)
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')


@dataclass
class Demo:
    printed: dict[str, Any]
    process: subprocess.Popen[str]
    http: httpx.Client
    """Of the server, with the demo's key."""
    outside: httpx.Client

    @property
    def project(self) -> str:
        return "/v1/integration/projects/narjis-heights"

    def children(self, kind: str | None = None) -> list[psutil.Process]:
        family = psutil.Process(self.process.pid).children()
        return [one for one in family if kind is None or f"holdfast.server.{kind}" in one.cmdline()]

    def hold(self, code: str) -> dict[str, Any]:
        answer = self.http.post(f"/v1/storefront/projects/narjis-heights/units/{code}/hold")
        assert answer.status_code == 201, answer.text
        held: dict[str, Any] = answer.json()
        return held

    def unit(self, code: str) -> dict[str, Any]:
        found: dict[str, Any] = self.http.get(f"{self.project}/units/{code}").raise_for_status().json()
        return found

    def arrivals(self, text: str, count: int = 1) -> list[str]:
        """What lands on the receiver's page of it, as its stream tells it; the page is not asked again."""
        found: list[str] = []
        with self.outside.stream("GET", "/live?after=0&lang=en", timeout=PATIENCE_SECONDS) as stream:
            for line in stream.iter_lines():
                if line.startswith("data: "):
                    entry = json.loads(line.removeprefix("data: "))
                    found += [entry] if text in entry else []
                if len(found) >= count:
                    break
        return found


@contextmanager
def demo_served(folder: Path, settings: Mapping[str, str]) -> Iterator[Demo]:
    with (folder / "demo.log").open("a") as log:
        process = subprocess.Popen(
            [servers.HOLDFAST, "serve", "--port", "0", "--demo", "--json"],
            env=servers.environment(settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            start_new_session=True,
        )
    assert process.stdout is not None
    with process.stdout:
        printed = json.loads(process.stdout.readline())
    key = {"Authorization": f"Bearer {printed['key']}"}
    with (
        httpx.Client(base_url=printed["url"], headers=key, trust_env=False, timeout=PATIENCE_SECONDS) as http,
        httpx.Client(base_url=printed["receiver"], trust_env=False, timeout=PATIENCE_SECONDS) as outside,
    ):
        yield Demo(printed, process, http, outside)
    process.terminate()
    process.wait(servers.STOP_SECONDS)


class Visitor:
    """Without JavaScript: follows links and sends forms."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(
            base_url=address,
            trust_env=False,
            follow_redirects=True,
            event_hooks={"request": [self._send_cookies], "response": [self._keep_cookies]},
        )
        self._jar: dict[tuple[bytes, str], str] = {}
        """By origin and name."""
        self.page: httpx.Response

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def look_at(self, path: str) -> "Visitor":
        self.page = self._client.get(path, timeout=PATIENCE_SECONDS)
        return self

    def send(self, ending: str, **fields: str) -> "Visitor":
        """The form whose address ends so, with what it hides."""
        form = next(form for form in _FORM.finditer(self.page.text) if form["path"].endswith(ending))
        hidden = {name: unescape(value) for name, value in _HIDDEN.findall(form["inside"])}
        address = self.page.url.join(unescape(form["path"]))
        self.page = self._client.post(address, data={**hidden, **fields}, timeout=PATIENCE_SECONDS)
        assert self.page.status_code == 200, self.page.text
        return self

    def _send_cookies(self, request: httpx.Request) -> None:
        """httpx keeps cookies that are for https alone to itself; browsers send them to this machine."""
        own = [f"{name}={value}" for (at, name), value in self._jar.items() if at == request.url.netloc]
        request.headers["Cookie"] = "; ".join(own)

    def _keep_cookies(self, response: httpx.Response) -> None:
        for line in response.headers.get_list("set-cookie"):
            name, _, value = line.partition(";")[0].partition("=")
            self._jar[response.url.netloc, name] = value

    def buy(self, code: str, choice: str) -> "Visitor":
        """Up to the payment page, and a choice there."""
        self.look_at(f"/p/narjis-heights/units/{code}").send("/hold").send("/sign", **BUYER)
        return self.send("/pay").send("/pay", choice=choice)
