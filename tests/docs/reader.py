"""A reader who types every example of a document into a shell, one after the other."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.docs.answers import Answers
from tests.docs.documents import Block, blocks, name_of

ADDRESS = "http://127.0.0.1:8000"
DATABASE_URL = "postgresql://holdfast:secret@db1:5432,db2:5432/holdfast"
COMMANDS = ".venv/bin/"
RECEIVER_PORT = 9000
TYPED = ("bash", "python")
SHOWN = ("http", "json", "text")
SECONDS = 120
SETTLED_WITHIN_SECONDS = 10.0
LOOKS_AGAIN_SECONDS = 0.1

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
        answer = following if _answers(text, block, following) else None
        line = text.count("\n", 0, block.start) + 1
        yield Example(f"{name_of(document)}:{line}", block, answer)


def _answers(text: str, block: Block, following: Block | None) -> bool:
    return (
        following is not None
        and following.language in SHOWN
        and not text[block.end : following.start].strip()
    )


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
        give_up_at = time.monotonic() + (SETTLED_WITHIN_SECONDS if _only_reads(example) else 0)
        before = self.answers
        while True:
            self.answers = before.copy()
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


def _only_reads(example: Example) -> bool:
    text = example.command.text
    return text.startswith(_READS) and "-X" not in text
