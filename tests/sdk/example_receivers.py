"""The receivers of `examples/`, run as their readers run them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.node import node
from tests.support.ports import free_port, wait_until_it_listens

EXAMPLES = Path(__file__).parents[2] / "examples"
JUDGE_SECONDS = 60

_JUDGE_IN_PYTHON = """
import json, sys
sys.path.insert(0, sys.argv[1])
from receiver import event_of, is_delivery
def judge(one):
    headers, body = one["headers"], one["body"].encode()
    signed = is_delivery(headers, body, [one["secret"]], one["now"])
    return [signed, signed and event_of(headers, body) is not None]
print(json.dumps([judge(one) for one in json.load(sys.stdin)]))
"""
_JUDGE_IN_NODE = """
import { readFileSync } from "node:fs";
const { eventOf, isDelivery } = await import(`${process.argv.at(-1)}/receiver.mjs`);
const lowered = (headers) => Object.fromEntries(
  Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
const judge = (one) => {
  const [headers, body] = [lowered(one.headers), Buffer.from(one.body)];
  const signed = isDelivery(headers, body, [one.secret], one.now);
  return [signed, signed && eventOf(headers, body) !== null];
};
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(judge)));
"""


@dataclass(frozen=True)
class ExampleReceiver:
    file: Path
    program: Callable[[], str]
    judge: Sequence[str]

    def verdicts(self, vectors: list[dict[str, Any]]) -> list[list[bool]]:
        """Of each vector, whether its signature is accepted, and whether it is taken for an event."""
        command = [self.program(), *self.judge, str(self.file.parent)]
        done = subprocess.run(
            command,
            input=json.dumps(vectors),
            capture_output=True,
            text=True,
            timeout=JUDGE_SECONDS,
            check=True,
        )
        verdicts: list[list[bool]] = json.loads(done.stdout)
        return verdicts

    @contextmanager
    def running(self, folder: Path, *secrets: str) -> Iterator["RunningReceiver"]:
        port = free_port()
        variables = {"HOLDFAST_SECRET": " ".join(secrets), "PORT": str(port), "INBOX": str(folder / "inbox")}
        with (folder / "printed").open("a") as printed:
            process = subprocess.Popen(
                [self.program(), str(self.file)], stdout=printed, env={**os.environ, **variables}, cwd=folder
            )
        try:
            wait_until_it_listens(process, port)
            yield RunningReceiver(f"http://127.0.0.1:{port}/holdfast", folder)
        finally:
            process.kill()
            process.wait()


@dataclass(frozen=True)
class RunningReceiver:
    url: str
    folder: Path

    @property
    def printed(self) -> list[str]:
        return (self.folder / "printed").read_text().splitlines()

    @property
    def inbox(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "inbox").read_text().splitlines()]


PYTHON = ExampleReceiver(
    EXAMPLES / "receiver-python" / "receiver.py", lambda: sys.executable, ["-c", _JUDGE_IN_PYTHON]
)
NODE = ExampleReceiver(
    EXAMPLES / "receiver-node" / "receiver.mjs", node, ["--input-type=module", "-e", _JUDGE_IN_NODE, "--"]
)
EXAMPLE_RECEIVERS = (PYTHON, NODE)
