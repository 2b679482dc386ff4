"""Every example of the documents, typed as it stands into a shell against a real server."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.demo import project as demo
from tests.docs.answers import Answers
from tests.docs.documents import DOCUMENTS, ROOT, Block, blocks, name_of
from tests.support import commands
from tests.support.ports import free_port
from tests.support.server import HOLDFAST, RunningServer, environment, serving

ADDRESS = "http://127.0.0.1:8000"
DATABASE_URL = "postgresql://holdfast:secret@db1:5432,db2:5432/holdfast"
COMMANDS = ".venv/bin/"
RECEIVER_PORT = 9000
TYPED = ("bash", "python")
SHOWN = ("http", "json", "text")
SECONDS = 300
SETTLED_WITHIN_SECONDS = 120
LOOKS_AGAIN_SECONDS = 0.1
SETTINGS = {
    # As the payments guide says.
    "HOLDFAST_PAYMENT_URL": "http://127.0.0.1:9000/pay",
    "HOLDFAST_PAYMENT_SECRET": "payment-secret-of-this-guide",
    # As the webhooks guide says: nobody waits for the last of eight attempts.
    "HOLDFAST_HOLDS_SHARE_PER_NETWORK": "0",
    "HOLDFAST_ATTEMPTS": "2",
    "HOLDFAST_RETRY_FIRST_GAP_SECONDS": "1",
}

# The shell of one block hands its variables to that of the next.
_SCRIPT = "echo $$ >> shells; set -a; . ./variables\n{block}\ncode=$?; export -p > variables; exit $code"
_READS = ("cat ", 'curl -i "$')


@dataclass(frozen=True)
class Example:
    name: str
    command: Block
    answer: Block | None


def examples(document: Path) -> Iterator[Example]:
    """Each block to be typed, with the answer that follows it directly."""
    text = document.read_text()
    found = blocks(document)
    for block, following in zip(found, [*found[1:], None][: len(found)], strict=True):
        if block.language not in TYPED:
            continue
        answer = following
        if following and (following.language not in SHOWN or text[block.end : following.start].strip()):
            answer = None
        line = text.count("\n", 0, block.start) + 1
        yield Example(f"{name_of(document)}:{line}", block, answer)


class Reader:
    def __init__(self, folder: Path, replacements: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._replacements = dict(replacements)
        self._environment = dict(environment)
        self.answers = Answers()
        (folder / "variables").write_text("")
        (folder / "shells").write_text("")

    def follow(self, example: Example) -> list[str]:
        """What is not as the document says. Who only looks may look again: a delivery takes a moment."""
        text = example.command.text
        only_reads = text.startswith(_READS) and "-X" not in text
        give_up_at = time.monotonic() + (SETTLED_WITHIN_SECONDS if only_reads else 0)
        before = self.answers
        while True:
            self.answers = deepcopy(before)
            found = self._differences(example)
            if not found or time.monotonic() >= give_up_at:
                return found
            time.sleep(LOOKS_AGAIN_SECONDS)

    def close(self) -> None:
        """Ends what the examples have left running, such as a receiver in the background."""
        for shell in (self._folder / "shells").read_text().split():
            with suppress(ProcessLookupError):
                os.killpg(int(shell), signal.SIGKILL)

    def _differences(self, example: Example) -> list[str]:
        done = self.type(example.command)
        if done.returncode != 0:
            return [f"it ended with {done.returncode}: {done.stdout}{done.stderr}"]
        if example.answer is None:
            return []
        shown = replace(example.answer, text=self._replaced(example.answer.text))
        return self.answers.differences(shown, done.stdout)

    def type(self, block: Block) -> subprocess.CompletedProcess[str]:
        text = self._replaced(self.answers.as_it_came(block.text))
        if block.language == "python":
            text = f"{sys.executable} - <<'THE_END'\n{text}\nTHE_END"
        return subprocess.run(
            ["bash", "-c", _SCRIPT.format(block=text)],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            process_group=0,
        )

    def _replaced(self, text: str) -> str:
        for shown, real in self._replacements.items():
            text = text.replace(shown, real)
        return text


EXAMPLES = {document: found for document in DOCUMENTS if (found := list(examples(document)))}
RECEIVER_KIT = ROOT / "sdk" / "python" / "src"
ALL = [example for found in EXAMPLES.values() for example in found]
SCOPES_OF_THE_DEMO = ("--scope", "integration", "--scope", "backoffice")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("curl") and shutil.which("bash")), reason="the examples need curl and bash"
    ),
]


@pytest.fixture(scope="module")
def differences(
    module_postgres_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, list[str]]]:
    """What each example got wrong; they are followed in order, for each builds on those before it.

    The database is their own, so that lists and the feed hold what the document says, and no more. What
    `make serve` has ready for a reader of the README is there: the demo's project, and a key.
    """
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url, **SETTINGS}
    commands.run(settings, "project", "add", "narjis-heights", "--name", demo.NAME)
    key = commands.run_for_json(settings, "key", "add", "--name", "Demo", *SCOPES_OF_THE_DEMO)["key"]
    variables = {**settings, "KEY": key, "PATH": os.environ["PATH"], "PYTHONPATH": str(RECEIVER_KIT)}
    found: dict[str, list[str]] = {}
    with serving(tmp_path_factory.mktemp("docs-server"), settings) as server:
        for listed in EXAMPLES.values():
            replaced = _replacements(server, module_postgres_url)
            folder = tmp_path_factory.mktemp("reader")
            with closing(Reader(folder, replaced, environment(variables))) as reader:
                found |= {example.name: reader.follow(example) for example in listed}
        yield found


def _replacements(server: RunningServer, database_url: str) -> dict[str, str]:
    port = free_port()
    return {
        ADDRESS: server.address,
        DATABASE_URL: database_url,
        COMMANDS: f"{HOLDFAST.parent}/",
        f"127.0.0.1:{RECEIVER_PORT}": f"127.0.0.1:{port}",
        f"--port {RECEIVER_PORT}": f"--port {port}",
        f"PORT={RECEIVER_PORT}": f"PORT={port}",
        " examples/": f" {ROOT}/examples/",
    }


@pytest.mark.parametrize("example", ALL, ids=lambda example: example.name)
def test_example_gives_the_answer_that_is_shown(example: Example, differences: dict[str, list[str]]) -> None:
    assert not differences[example.name], example.command.text


def test_documents_have_examples() -> None:
    assert len(EXAMPLES) > 5
    assert sum(example.answer is not None for example in ALL) > 150
