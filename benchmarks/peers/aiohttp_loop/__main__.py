"""``python -m benchmarks.peers.aiohttp_loop FILE IN_FLIGHT``: posts what the file lists, a delivery a line.

A line is URL, event, id and body, between tabs. As a careful user would write it: one session, connections
kept, ten seconds for an answer, no redirects, at most 16 KiB of the answer read. It waits for no database and
keeps nothing of what came back.
"""

import asyncio
import hmac
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import uvloop

SECRET = b"hfs_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"
LONGEST_ANSWER = 16 * 1024
Line = tuple[str, str, str, bytes]


def read(path: Path) -> list[Line]:
    lines = (line.split("\t") for line in path.read_text().splitlines())
    return [(url, event, delivery, body.encode()) for url, event, delivery, body in lines]


def headers(event: str, delivery: str, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    digest = hmac.digest(SECRET, timestamp.encode() + b"." + body, "sha256").hex()
    return {
        "Content-Type": "application/json",
        "User-Agent": "Service-Webhooks/1",
        "X-Service-Event": event,
        "X-Service-Delivery": delivery,
        "X-Service-Timestamp": timestamp,
        "X-Service-Signature": f"sha256={digest}",
    }


async def post_each(session: aiohttp.ClientSession, lines: Iterator[Line]) -> None:
    for url, event, delivery, body in lines:
        sent = headers(event, delivery, body)
        async with session.post(url, data=body, headers=sent, allow_redirects=False) as answer:
            answer.raise_for_status()
            await answer.content.read(LONGEST_ANSWER)


async def post_all(lines: list[Line], in_flight: int) -> None:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=10, ceil_threshold=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session:
        shared = iter(lines)
        await asyncio.gather(*(post_each(session, shared) for _ in range(in_flight)))


if __name__ == "__main__":
    uvloop.run(post_all(read(Path(sys.argv[1])), int(sys.argv[2])))
