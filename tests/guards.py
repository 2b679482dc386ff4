"""Disable guards of the code, one at a time, and see whether `make test` notices.

A guard is an ``if`` without an ``else`` that does nothing but raise, return or continue. Some of those in
`domain`, `operations` and `webhooks` are chosen at random. Each is disabled in a copy of the checkout, where
the tests of its package run and, if they pass, all of `make test`. A run that does not end within 20 minutes
counts as noticed.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.support.make import ROOT, make_command, outside_of_make

PACKAGES = ("domain", "operations", "webhooks")
NOT_COPIED = shutil.ignore_patterns(".git", ".venv", "dist", "__pycache__", ".*_cache", ".hypothesis")
LIMIT_SECONDS = 1200


class Guard(NamedTuple):
    file: Path
    """In the checkout."""
    start: int
    end: int
    """Of the condition, in bytes."""
    line: int
    condition: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: if {self.condition}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=30)
    options = parser.parse_args()
    guards = [guard for package in PACKAGES for guard in _guards_of(package)]
    chosen = random.Random(options.seed).sample(guards, options.count)
    print(f"{len(chosen)} of {len(guards)} guards, seed {options.seed}")
    noticed = 0
    for guard in chosen:
        failure = _failure_without(guard)
        noticed += failure is not None
        print(f"{guard}\n    {failure or 'NOT NOTICED'}", flush=True)
    print(f"{noticed} of {len(chosen)} were noticed")
    return noticed < len(chosen)


def _guards_of(package: str) -> Iterator[Guard]:
    for path in sorted((ROOT / "src/holdfast" / package).rglob("*.py")):
        source = path.read_bytes()
        lines = [0]
        for line in source.splitlines(keepends=True):
            lines.append(lines[-1] + len(line))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.If) and _is_guard(node):
                start = lines[node.test.lineno - 1] + node.test.col_offset
                end = lines[(node.test.end_lineno or 0) - 1] + (node.test.end_col_offset or 0)
                yield Guard(path.relative_to(ROOT), start, end, node.lineno, ast.unparse(node.test))


def _is_guard(node: ast.If) -> bool:
    leaves = isinstance(node.body[0], ast.Raise | ast.Return | ast.Continue)
    return leaves and len(node.body) == 1 and not node.orelse


def _failure_without(guard: Guard) -> str | None:
    """The first test that fails without it. The condition is still computed, since it may bind a name."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        checkout = Path(folder) / "checkout"
        shutil.copytree(ROOT, checkout, ignore=NOT_COPIED)
        path = checkout / guard.file
        source = path.read_bytes()
        condition = b"(" + source[guard.start : guard.end] + b") and False"
        path.write_bytes(source[: guard.start] + condition + source[guard.end :])
        return _failure(checkout, f"tests/{guard.file.parts[2]}") or _failure(checkout)


def _failure(checkout: Path, *paths: str) -> str | None:
    temporary = checkout.parent
    environment = {**os.environ, "PYTHONPATH": f"{checkout}/src", "PYTEST_DEBUG_TEMPROOT": f"{temporary}"}
    with subprocess.Popen(
        make_command("test", f"ARGS=-x -q {' '.join(paths)}"),
        cwd=checkout,
        env=outside_of_make(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        try:
            output, _ = run.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            _kill_all_of(run, temporary)
            return f"The tests did not end within {LIMIT_SECONDS // 60} minutes."
    failed = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    assert failed or run.returncode == 0, output[-3000:]
    return failed[0] if failed else None


def _kill_all_of(run: subprocess.Popen[str], temporary: Path) -> None:
    """The tests, and the servers and databases that they have started in their folder."""
    started = [psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)]
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process in started or str(temporary) in " ".join(process.cmdline()):
                process.kill()


if __name__ == "__main__":
    sys.exit(main())
