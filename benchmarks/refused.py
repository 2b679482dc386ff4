"""``python -m benchmarks.refused``: what a bad request to the public part of a real server costs.

For each request: the CPU time of the web process, which is the median of several, and the bytes of the
response. It needs neither wrk nor the peers, ends with 0 when every request is within both bounds, and with 1
otherwise. ``--top 10`` shows only the ten most expensive ones.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

from benchmarks.arena import Arena, own_cluster
from benchmarks.contestants import holdfast, web_process
from benchmarks.progress import Progress
from benchmarks.workload import SLUG
from holdfast.storage.secrets import NAME as ENCRYPTION_KEYS
from holdfast.storage.secrets import new_encryption_key

MAX_CPU_MS = 20.0
MAX_BYTES = 64_000
UNIT_COUNT = 1000
SERVED = (200, 201, 206)
HEAD_BYTES = 63_000
BODY_BYTES = 1024**2 - 1000
SETTINGS = {
    # The rate limit would refuse most of the repetitions, for less.
    "HOLDFAST_PUBLIC_RATE_LIMIT": "0",
    "HOLDFAST_TRUSTED_PROXIES": "127.0.0.1",
    "HOLDFAST_PAYMENT_URL": "http://127.0.0.1:9/pay",
    "HOLDFAST_PAYMENT_SECRET": "a secret of the benchmark",
    "HOLDFAST_CORS_ORIGINS": "https://www.example.com",
}
UNITS, BOOKING = f"/v1/storefront/projects/{SLUG}/units", "/v1/storefront/bookings/WWW-WWW-WWW"
HOLD, SIGN, CALLBACK = f"{UNITS}/A-1/hold", f"{BOOKING}/sign", "/v1/payments/callback"
PAGE, SIGN_IN, SET_UP = f"/p/{SLUG}", "/backoffice/sign-in", "/backoffice/set-up/x"
STYLE = "/static/holdfast.css"
PATHS = (
    *(UNITS, f"{UNITS}/A-1", BOOKING, PAGE, f"{PAGE}/units/A-1", f"{PAGE}/bookings/WWW-WWW-WWW"),
    *(SIGN_IN, SET_UP, "/backoffice/bookings", "/", "/docs", "/openapi.json", "/problems", STYLE),
    *("/v1/integration/projects", "/v1/backoffice/bookings", "/healthz", "/nowhere"),
)
JSON, FORM = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"
MULTIPART = "Content-Type: multipart/form-data; boundary=b"
SIGNED = ("X-Payment-Timestamp: 1794648600", "X-Payment-Signature: sha256=" + "0" * 64)
BEARER = "Authorization: Bearer nonsense"


def repeated(text: str, size: int) -> str:
    return text * (size // len(text))


def numbered(text: str, size: int) -> str:
    return "".join(text % number for number in range(size // (len(text) + 4)))


def request(method: str, target: str, *lines: str, body: str = "", length: int | None = None) -> bytes:
    content = body.encode("utf-8", "surrogateescape")
    framing = f"Content-Length: {len(content) if length is None else length}"
    head = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", framing, *lines, "", ""]
    return "\r\n".join(head).encode("latin-1") + content


def long_headers() -> Iterator[tuple[str, str]]:
    size = HEAD_BYTES
    yield (
        "X-Forwarded-For of trusted addresses",
        "X-Forwarded-For: " + repeated("127.0.0.1, ", size) + "127.0.0.1",
    )
    yield "X-Forwarded-For of IPv6", "X-Forwarded-For: " + repeated("::ffff:127.0.0.1,", size) + "::1"
    yield "X-Forwarded-For of commas", "X-Forwarded-For: " + "," * size
    yield "X-Forwarded-For, one long entry", "X-Forwarded-For: " + "1" * size + ":x"
    yield "Accept-Language", "Accept-Language: " + numbered("xx-%04d;q=0.1,", size)
    yield "Accept-Language, long quality", "Accept-Language: ar;q=0." + "1" * (size - 10)
    yield "Accept-Language of commas", "Accept-Language: " + "," * size
    yield "If-None-Match", "If-None-Match: " + numbered('"%04d", ', size) + '"x"'
    yield "If-None-Match of quotes", "If-None-Match: " + '"' * size
    yield "Cookie, many", "Cookie: " + numbered("__Host-holdfast_booking_%04d=x; ", size)
    yield "Cookie, many of one name", "Cookie: " + repeated("__Host-holdfast_buyer=x; ", size)
    yield "Cookie of visitors", "Cookie: " + repeated("holdfast_visitor=x; ", size)
    yield "Cookie of semicolons", "Cookie: " + ";" * size
    yield "Cookie, a long session", "Cookie: __Host-holdfast_session=" + "x" * size
    yield (
        "Cookie, real booking names",
        "Cookie: " + repeated("__Host-holdfast_booking_wwwwwwwww=hft_x; ", size),
    )
    yield "Authorization", "Authorization: Bearer " + "x" * size
    yield "Authorization of spaces", "Authorization: Bearer" + " " * size + "x"
    yield "Idempotency-Key", "Idempotency-Key: " + "x" * size
    yield "X-Request-Id", "X-Request-Id: " + "x" * size
    yield "Host", "Host: " + "x" * size
    yield "Range", "Range: bytes=" + numbered("%d-,", size)
    yield "Range of one byte each", "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(0, 9000, 2))[:size]
    yield "Range of many bytes", "Range: bytes=" + repeated("0-99999,", size) + "0-1"
    yield "Accept-Encoding", "Accept-Encoding: " + repeated("gzip, ", size)
    yield "Accept", "Accept: " + repeated("text/html, ", size)
    yield "Origin", "Origin: https://" + "x" * size
    yield "User-Agent", "User-Agent: " + "x" * size
    yield (
        "Content-Type with parameters",
        "Content-Type: application/json;" + repeated(" charset=utf-8;", size),
    )
    yield "Content-Type with quotes", "Content-Type: multipart/form-data; boundary=" + '"\\' * (size // 2)
    yield (
        "Content-Type of semicolons",
        'Content-Type: multipart/form-data; boundary=b; a="' + ";" * (size - 40) + '"',
    )
    yield "many lines", "\r\n".join(f"x{n}: y" for n in range(size // 9))
    yield "many cookie lines", "\r\n".join(["Cookie: a"] * (size // 11))
    yield "many empty lines of one name", "\r\n".join(["a:"] * (size // 4))


def long_targets() -> Iterator[tuple[str, str]]:
    size = HEAD_BYTES
    fillings = {
        "escapes": "%41", "broken UTF-8": "%FF", "slashes": "/", "dots": "/..", "escaped slashes": "%2F",
        "percent signs": "%", "Arabic letters": "%D8%B9", "hyphens": "a-",
    }  # fmt: skip
    for name, filling in fillings.items():
        for path in (
            UNITS,
            "/v1/storefront/bookings",
            PAGE,
            f"{PAGE}/units",
            "/static",
            "/backoffice",
            "/problems",
            "",
        ):
            yield f"{path or '/'}: a path of {name}", f"{path}/{repeated(filling, size)}"
    queries = {
        "many parameters": numbered("p%d=1&", size), "200 long ones": ("x" * 300 + "&") * 199,
        "200 long escapes": ("%D8%B9" * 50 + "=&") * 199, "ampersands": "&" * size,
        "a long value": "limit=" + "9" * size,
        "a long cursor": "cursor=" + "A" * size, "a long language": "lang=" + "%41" * (size // 3),
        "a long time": "next=/" + "/" * size, "a key": "key=" + "x" * size, "equal signs": "=" * size,
        "many filters": "status=x&" * 199, "pluses": "+" * size, "broken UTF-8": "p=" + "%FF" * (size // 3),
    }  # fmt: skip
    for name, query in queries.items():
        for path in PATHS:
            yield f"{path}: a query of {name}", f"{path}?{query[:size]}"


def json_bodies(size: int) -> Iterator[tuple[str, str]]:
    yield "unknown names", "{" + numbered('"n%d":1,', size) + '"x":1}'
    yield (
        "short unknown names",
        "{" + ",".join(f'"{n}":0' for n in range(size // 8))[: size - 10].rpartition(",")[0] + "}",
    )
    yield "one name again and again", "{" + repeated('"a":1,', size) + '"a":1}'
    yield "arrays in arrays", "[" * size
    yield "objects in objects", repeated('{"a":', size)
    yield "a closed nest", "[" * (size // 2) + "]" * (size // 2)
    yield "a nest below the limit", '{"a":' + "[" * 900 + "]" * 900 + "}"
    yield "a long number", '{"a":' + "9" * (size - 10) + "}"
    yield "numbers", "[" + repeated("1e999,", size) + "1]"
    yield "long exponents", "[" + repeated("1" * 900 + "e99,", size) + "1]"
    yield "white space", " " * size
    yield "white space in an object", "{" + " " * (size - 10) + "}"
    yield "white space at the end", "{}" + " " * (size - 10) + "x"
    yield "a long name", '{"' + "x" * (size - 10) + '":1}'
    yield "a name of tildes", '{"' + "~" * (size - 10) + '":1}'
    yield "names of lone surrogates", "{" + numbered('"\\ud800%d":1,', size) + '"x":1}'
    yield "escapes", '{"' + repeated("\\u0041", size) + '":1}'
    yield "spaces in the buyer's name", '{"buyerName":"a' + " " * (size - 30) + 'a"}'
    yield "marks in the buyer's name", '{"buyerName":"' + repeated("a \u200f", size // 2) + 'a"}'
    yield "a phone number of digits", '{"buyerPhone":"' + "1 " * (size // 2 - 20) + 'x"}'
    yield "broken UTF-8", "\udcff" * size
    yield "an array of objects", "[" + repeated('{"a":{}},', size) + "{}]"


def form_bodies(size: int) -> Iterator[tuple[str, str, str]]:
    for name, body in {
        "many fields": numbered("f%d=1&", size), "199 long fields": ("x" * 75 + "=1&") * 199,
        "ampersands": "&" * size, "a long value": "csrf=" + "0" * size,
        "escapes": "csrf=" + repeated("%30", size),
        "199 values of escapes": ("f=" + "%D8%B9" * 12 + "&") * 199, "equal signs": "=" * size,
        "zeros": "%00" * (size // 3), "pluses": "+" * size,
    }.items():  # fmt: skip
        yield name, FORM, body[:size]
    part = '--b\r\nContent-Disposition: form-data; name="f%d"\r\n\r\nx\r\n'
    encoding = "\r\nContent-Transfer-Encoding: base64"
    headers = "--b\r\n" + repeated("a: b\r\n", size)
    for name, body in {
        "many parts": numbered(part, size) + "--b--\r\n",
        "many headers of a part": headers + "\r\nx\r\n--b--\r\n",
        "one long header of a part": "--b\r\nContent-Disposition: form-data; name=" + "x" * size,
        "many parameters of a part": "--b\r\nContent-Disposition: form-data"
        + repeated("; a=b", size)
        + "\r\n\r\n",
        "quotes in a part": "--b\r\nContent-Disposition: form-data; name=" + '"\\' * (size // 2) + "\r\n\r\n",
        "almost boundaries": '--b\r\nContent-Disposition: form-data; name="f"\r\n\r\n'
        + repeated("\r\n--", size),
        "a beginning without end": "-" * size,
        "line ends": "\r\n" * (size // 2),
        "encoded parts": numbered(part.replace("\r\n\r\nx", f"{encoding}\r\n\r\nAAAA"), size),
        "files": numbered(
            '--b\r\nContent-Disposition: form-data; name="f%d"; filename="x"\r\n\r\nx\r\n', size
        ),
    }.items():
        yield f"{name} (multipart)", MULTIPART, body


def requests(token: str, sign: str) -> Iterator[tuple[str, bytes]]:
    yield from reading_requests()
    yield from json_requests(token, sign)
    yield from form_requests()
    yield from heads()
    yield from chunked_requests()


def reading_requests() -> Iterator[tuple[str, bytes]]:
    for path in PATHS:
        for name, line in long_headers():
            yield f"GET {path}: {name}", request("GET", path, line)
        yield f"GET {path}: gzip", request("GET", path, "Accept-Encoding: gzip")
        for method in ("GET", "DELETE", "POST"):
            yield f"{method} {path}: a body of 1 MiB", request(method, path, JSON, body="[" * BODY_BYTES)
        yield f"BREW {path}", request("BREW", path)
        yield (
            f"{'X' * 9} {path}: preflight",
            request(
                "OPTIONS",
                path,
                "Origin: https://www.example.com",
                "Access-Control-Request-Method: PUT",
                "Access-Control-Request-Headers: " + numbered("x%d,", HEAD_BYTES),
            ),
        )
    for name, target in long_targets():
        yield f"GET {name[:90]}", request("GET", target)
        yield (
            f"GET {name[:90]}, as a page",
            request("GET", target, "Accept: text/html", "Accept-Encoding: gzip"),
        )


def json_requests(token: str, sign: str) -> Iterator[tuple[str, bytes]]:
    for path, own, lines in (
        (HOLD, 1024, ()),
        (sign, 16_384, (f"Authorization: Bearer {token}",)),
        (SIGN, 16_384, (BEARER,)),
        (CALLBACK, 65_536, SIGNED),
        (CALLBACK, 65_536, ()),
    ):
        for size in (own - 100, BODY_BYTES):
            for name, body in json_bodies(size):
                yield f"POST {path}: {name}, {size} bytes", request("POST", path, JSON, *lines, body=body)
        for name, line in long_headers():
            yield f"POST {path}: {name}", request("POST", path, line, *lines)


def form_requests() -> Iterator[tuple[str, bytes]]:
    booking = f"{PAGE}/bookings/WWW-WWW-WWW"
    sign_in = (SIGN_IN, f"{SIGN_IN}/code", f"{SIGN_IN}/language", SET_UP, "/backoffice/staff")
    for path in (f"{PAGE}/units/A-1/hold", f"{booking}/sign", booking, *sign_in, STYLE):
        for size in (16_000, BODY_BYTES):
            for name, kind, body in form_bodies(size):
                yield (
                    f"POST {path}: {name}, {size} bytes",
                    request("POST", path, kind, "Cookie: __Host-holdfast_session=x", body=body),
                )


def chunked_requests() -> Iterator[tuple[str, bytes]]:
    chunk = b"1\r\n{\r\n"
    for path in (HOLD, SIGN, CALLBACK):
        head = request("POST", path, JSON, BEARER, *SIGNED, length=0).replace(
            b"Content-Length: 0", b"Transfer-Encoding: chunked"
        )
        yield f"POST {path}: chunks of one byte", head + chunk * (BODY_BYTES // len(chunk))
        yield f"POST {path}: long chunk extensions", head + b"1;" + b"x" * BODY_BYTES
        yield f"POST {path}: trailers", head + b"0\r\n" + b"a: b\r\n" * (BODY_BYTES // 6)


def heads() -> Iterator[tuple[str, bytes]]:
    start = b"GET / HTTP/1.1\r\nHost: x\r\n"
    for name, line in {
        "tiny lines": b"a:\r\n",
        "one endless line": b"a" * 8192,
        "spaces": b"a:" + b" " * 1000,
    }.items():
        yield f"a head of {name}", start + line * (BODY_BYTES // len(line))
        yield f"a head of 63 KB of {name}", start + (line * (HEAD_BYTES // len(line))).rstrip() + b"\r\n\r\n"
    yield "line ends before a request", b"\r\n" * (BODY_BYTES // 2)


def send(port: int, content: bytes) -> tuple[int, int]:
    """Return the status and the bytes of the whole response."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        try:
            connection.sendall(content)
            if b"chunked" in content[:2000]:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # An early answer may close the connection before all is sent.
        received = b""
        try:
            while piece := connection.recv(65_536):
                received += piece
        except OSError:
            pass
    head, _, _ = received.partition(b"\r\n")
    return int(head.split()[1]) if head else 0, len(received)


def hold(port: int) -> tuple[str, str]:
    """Return the token of a hold, which anybody may have, and the path to sign it."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request("POST", f"{UNITS}/A-2/hold")
    held = json.loads(connection.getresponse().read())
    return held["token"], f"/v1/storefront/bookings/{held['reference']}/sign"


def measure(port: int, pid: int, content: bytes, repeats: int) -> tuple[float, int, int]:
    """Return the CPU milliseconds of the web process, the bytes of the response, and its status."""
    clock = (~pid << 3) | 2  # the CPU clock of another process: see clock_getcpuclockid(3)
    taken = []
    for _ in range(repeats):
        before = time.clock_gettime(clock)
        status, size = send(port, content)
        taken.append(1000 * (time.clock_gettime(clock) - before))
    return median(taken), size, status


def measure_all(repeats: int) -> list[tuple[float, int, int, str]]:
    # Whoever names a database names the key too that seals the secrets in it.
    os.environ[ENCRYPTION_KEYS] = new_encryption_key()
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, own_cluster(Path(folder)) as url:
        ground = Arena(url, Path(folder), Progress(), quick=True).ground("holdfast", UNIT_COUNT)
        with holdfast(ground, Path(folder), settings=SETTINGS) as server:
            pid = web_process(server)
            sent = requests(*hold(server.port))
            found = [(*measure(server.port, pid, content, repeats), name) for name, content in sent]
    # What is served is not refused: pages may be long.
    return [one for one in found if one[2] not in SERVED]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refused", description=__doc__)
    parser.add_argument("--top", type=int, default=20, help="how many to show (20)")
    parser.add_argument("--repeats", type=int, default=5, help="how often each is sent (5)")
    asked = parser.parse_args()
    found = sorted(measure_all(asked.repeats), reverse=True)
    for cpu_ms, size, status, name in found[: asked.top]:
        print(f"{cpu_ms:6.1f} ms {size:7,} B  {status}  {name}")
    cpu_ms, size = found[0][0], max(one[1] for one in found)
    print(f"{len(found)} refused requests; at most {cpu_ms:.1f} ms of CPU and {size:,} bytes.")
    return 0 if cpu_ms <= MAX_CPU_MS and size <= MAX_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
