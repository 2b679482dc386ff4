"""What a long run is doing and how long it will take, instead of thousands of dots.

``make check ARGS=--write-durations`` writes the durations of all files anew, from which it is estimated.
"""

import json
import time
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.support.scheduling import DURATIONS, Durations, file_of, group_of

LINE_EVERY_SECONDS = 30.0
"""Where lines stay, as in the log of CI."""


class Progress:
    """Lives in the process that collects the results of the others."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._processes = int(config.option.numprocesses)
        self._durations = Durations(config)
        self._left: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()
        self._running: dict[str, str] = {}
        self._measured: dict[str, list[float]] = {}
        self._failed = 0
        self._started = self._first_test = self._last_line = time.monotonic()

    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self._tests:
            self._tests.update(map(file_of, ids))
            self._left.update(self._tests)
            self._first_test = time.monotonic()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._running[file_of(nodeid)] = nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = file_of(report.nodeid)
        self._measured.setdefault(file, [0.0, 0.0])["slow" in report.keywords] += report.duration
        if report.failed:
            self._failed += 1
            self._reporter().ensure_newline()
            self._reporter().write_line(f"FAILED {report.nodeid} ({report.when})", red=True)
        if report.when == "teardown":
            self._left[file] -= 1
            if not self._left[file]:
                del self._left[file]
                self._running.pop(file, None)
            self._show()

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str]:
        """Counted and summed up as always, without a letter."""
        if report.failed:
            return ("failed", "", "FAILED") if report.when == "call" else ("error", "", "ERROR")
        is_counted = report.skipped or report.when == "call"
        return (report.outcome if is_counted else ""), "", ""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._reporter().ensure_newline()
        if self._config.option.write_durations:
            rounded = {file: [round(one, 1) for one in pair] for file, pair in sorted(self._measured.items())}
            lines = ",\n".join(f"  {json.dumps(file)}: {pair}" for file, pair in rounded.items())
            DURATIONS.write_text(f"{{\n{lines}\n}}\n")

    def _show(self) -> None:
        now, reporter = time.monotonic(), self._reporter()
        if now - self._last_line < (1.0 if reporter.isatty else LINE_EVERY_SECONDS):
            return
        self._last_line = now
        done, all_tests = self._tests.total() - self._left.total(), self._tests.total()
        failed = f", {self._failed} failed" if self._failed else ""
        running = ", ".join(Path(file).stem.removeprefix("test_") for file in self._running)
        line = (
            f"{_clock(now - self._started)}: {done:,} of {all_tests:,} tests{failed}, "
            f"about {_clock(self._seconds_left(now - self._first_test))} left; running: {running}"
        )
        if reporter.isatty:
            reporter.rewrite(line[: self._config.get_terminal_writer().fullwidth - 1], erase=True)
        else:
            reporter.write_line(line)

    def _seconds_left(self, elapsed: float) -> float:
        expected = {file: self._durations.of(file) for file in self._tests}
        left: dict[str, float] = defaultdict(float)
        for file, count in self._left.items():
            left[group_of(file)] += expected[file] * count / self._tests[file]
        to_do = max(sum(left.values()) / self._processes, *left.values()) if left else 0.0
        done = (sum(expected.values()) - sum(left.values())) / self._processes
        # How this machine compares with the one that wrote the durations is known after a while.
        return to_do * (elapsed / done if done > LINE_EVERY_SECONDS else 1.0)

    def _reporter(self) -> pytest.TerminalReporter:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(reporter, pytest.TerminalReporter)
        return reporter


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
