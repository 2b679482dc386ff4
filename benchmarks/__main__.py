"""``python -m benchmarks [part …] [--quick]``: all parts, or the ones named."""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import machine
from benchmarks.arena import Arena, NotDurable, own_cluster
from benchmarks.parts import (
    before,
    board,
    bulk,
    contention,
    deliveries,
    delivery_growth,
    delivery_latency,
    delivery_workers,
    growth,
    holds,
    idle,
    isolation,
    lapse,
    latency,
    listing,
    pages,
    put,
    storefront,
)
from benchmarks.processes import DidNotStart
from benchmarks.progress import Progress
from benchmarks.report import archive, text
from benchmarks.report.findings import Finding
from benchmarks.wrk import InvalidRun, WrkMissing, find_wrk
from holdfast.storage.secrets import NAME as ENCRYPTION_KEYS
from holdfast.storage.secrets import new_encryption_key

PARTS: dict[str, Callable[[Arena], Finding]] = {
    "put": put.measure,
    "latency": latency.measure,
    "bulk": bulk.measure,
    "growth": growth.measure,
    "list": listing.measure,
    "holds": holds.measure,
    "contention": contention.measure,
    "lapse": lapse.measure,
    "idle": idle.measure,
    "deliveries": deliveries.measure,
    "delivery_workers": delivery_workers.measure,
    "delivery_latency": delivery_latency.measure,
    "isolation": isolation.measure,
    "delivery_growth": delivery_growth.measure,
    "pages": pages.measure,
    "board": board.measure,
    "storefront": storefront.measure,
}
# Needs another checkout, so it is run only where it is named.
BY_NAME: dict[str, Callable[[Arena], Finding]] = {"before": before.measure}
RESULTS = Path(__file__).parent / "results"


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    # Whoever names a database names the key too that seals the secrets in it.
    os.environ[ENCRYPTION_KEYS] = new_encryption_key()
    try:
        find_wrk()
        findings = _measure(asked)
    except (WrkMissing, InvalidRun, DidNotStart, NotDurable) as refusal:
        print(f"\n{refusal}", file=sys.stderr)
        return 2
    return 0 if all(target.met for finding in findings for target in finding.targets) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", type=_part, metavar="part", help=f"of {', '.join(PARTS)}; all if none"
    )
    parser.add_argument("--quick", action="store_true", help="short runs to try things; writes no results")
    parser.add_argument("--results", type=Path, help="folder to write to (benchmarks/results)")
    return parser.parse_args()


def _part(name: str) -> str:
    if name not in PARTS and name not in BY_NAME:
        raise argparse.ArgumentTypeError(f"there is no part {name!r}; the parts are {', '.join(PARTS)}")
    return name


def _measure(asked: argparse.Namespace) -> list[Finding]:
    progress, findings = Progress(), []
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, own_cluster(Path(folder)) as url:
        arena = Arena(url, Path(folder), progress, asked.quick)
        about = machine.describe(url, Path(folder))
        for name in asked.parts or PARTS:
            findings.append((PARTS | BY_NAME)[name](arena))
            progress.done()
            print(text.show(findings[-1]), flush=True)
    target = asked.results or (None if asked.quick else RESULTS)
    if target is not None:
        command = " ".join(["python -m benchmarks", *asked.parts, *(["--quick"] if asked.quick else [])])
        archive.keep(target, about, command, findings)
    return findings


if __name__ == "__main__":
    sys.exit(main())
