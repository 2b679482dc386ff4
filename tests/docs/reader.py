"""A reader who types every example of a document into a shell, one after the other."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.docs.answers import Answers
from tests.docs.documents import Block, blocks, name_of

ADDRESS = "http://127.0.0.1:8000"
COMMAND = ".venv/bin/holdfast"
TYPED = ("bash", "console", "python")
SHOWN = ("http", "json", "text")
SECONDS = 30

# The shell of one block hands its variables to that of the next.
_SCRIPT = "set -a; . ./variables\n{block}\ncode=$?; export -p > variables; exit $code"


@dataclass(frozen=True)
class Example:
    name: str
    command: Block
    answer: Block | None


def examples(document: Path) -> Iterator[Example]:
    """Each block to be typed, with the answer that follows it directly."""
    text = document.read_text()
    found = blocks(document)
    for block, following in zip(found, [*found[1:], None], strict=True):
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

    def follow(self, example: Example) -> list[str]:
        """What is not as the document says."""
        done = self.type(example.command)
        if done.returncode != 0:
            return [f"it ended with {done.returncode}: {done.stdout}{done.stderr}"]
        return [] if example.answer is None else self.answers.differences(example.answer, done.stdout)

    def type(self, block: Block) -> subprocess.CompletedProcess[str]:
        text = self.answers.as_it_came(block.text)
        if block.language == "python":
            text = f"{sys.executable} - <<'THE_END'\n{text}\nTHE_END"
        for shown, real in self._replacements.items():
            text = text.replace(shown, real)
        return subprocess.run(
            ["bash", "-c", _SCRIPT.format(block=text)],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
