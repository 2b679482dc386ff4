"""`make chaos`: faults against a real deployment on this machine, and a check that nothing was lost."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from pathlib import Path

from benchmarks.progress import Progress
from tests.chaos import database_faults, network_faults, process_faults, receiver_faults, session_faults
from tests.chaos.faults import Injection, Kind
from tests.chaos.machine import CannotRun, check_machine
from tests.chaos.plan import make_plan, repeat_kind
from tests.chaos.report import Result, text
from tests.chaos.run import run_plan

KINDS: list[Kind] = [
    *database_faults.KINDS,
    *network_faults.KINDS,
    *process_faults.KINDS,
    *receiver_faults.KINDS,
    *session_faults.KINDS,
]
CANNOT_RUN, STOPPED = 2, 130

LONGEST_MINUTES = 60


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="any number; the plan follows from it")
    parser.add_argument("--minutes", type=float, default=1.5, help="for how long new faults begin")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one kind of fault")
    parser.add_argument("--count", type=int, default=0, help="with --only: how many of it")
    parser.add_argument("--list", action="store_true", help="print the plan and end")
    parser.add_argument("--output", type=Path, help="the folder for the history, the logs and the report")
    parser.add_argument("--source", type=Path, help="run the Holdfast of this folder")
    parser.add_argument("--no-fsync", action="store_true", help="let PostgreSQL not wait for the disk")
    options = parser.parse_args(arguments)
    unknown = set(options.only) - {kind.name for kind in KINDS}
    if unknown:
        parser.error(f"no such fault: {', '.join(sorted(unknown))}")
    if not 0 < options.minutes <= LONGEST_MINUTES:
        parser.error(f"--minutes must be more than 0 and at most {LONGEST_MINUTES}")
    if options.count and len(options.only) != 1:
        parser.error("--count needs one --only")
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    chosen = [kind for kind in KINDS if not options.only or kind.name in options.only]
    if options.count:
        plan = repeat_kind(chosen[0], options.count, options.seed)
    else:
        plan = make_plan(options.seed, options.minutes, chosen)
    if options.list:
        for one in plan:
            print(f"{one.at:7.2f} s  {one.kind.lane:10} {one.kind.name} for {one.seconds} s")
        return 0
    if options.only or options.source or options.no_fsync:
        command = f"python -m tests.chaos {shlex.join(arguments)}"
    else:
        command = f"make chaos SEED={options.seed} MINUTES={options.minutes}"
    progress = Progress()
    try:
        check_machine()
        output, result = _run(plan, options, progress)
    except CannotRun as reason:
        progress.done()
        print(f"The chaos run cannot run here: {reason}")
        return CANNOT_RUN
    except (asyncio.CancelledError, KeyboardInterrupt):
        progress.done()
        print("Stopped; nothing was checked.")
        return STOPPED
    except Exception as failure:  # noqa: BLE001 - whatever it is, the last line is the verdict
        progress.done()
        traceback.print_exc()
        print(f"FAILED: the harness itself ({failure!r}). Nothing was checked.")
        return 1
    progress.done()
    result.save(output / "result.json")
    report = text(result, command)
    (output / "report.txt").write_text(report + "\n")
    print(report)
    return 0 if result.held else 1


def _run(plan: Sequence[Injection], options: argparse.Namespace, progress: Progress) -> tuple[Path, Result]:
    """Run it, and return the folder that has the history and the logs, and the result."""
    output: Path = options.output or Path("dist/chaos") / f"seed-{options.seed}"
    output.mkdir(parents=True, exist_ok=True)
    settings = {} if options.source is None else {"PYTHONPATH": str(options.source.absolute())}
    postgres = {"fsync": "off"} if options.no_fsync else {}
    # The system user of PostgreSQL must be able to reach it, which a checkout may not allow.
    folder = Path(tempfile.mkdtemp(prefix="holdfast-chaos-"))
    folder.chmod(0o755)
    try:
        run = run_plan(plan, options.seed, folder, progress, settings, postgres)
        return output, asyncio.run(_run_until_stopped(run, progress))
    finally:
        for path in folder.iterdir():
            if path.is_file() and path.suffix != ".img":
                shutil.copy(path, output / path.name)
        shutil.rmtree(folder, ignore_errors=True)


async def _run_until_stopped(run: Coroutine[None, None, Result], progress: Progress) -> Result:
    """Ctrl-C, SIGTERM and a closed terminal cancel it, once: servers are stopped and mounts removed."""
    task, loop = asyncio.create_task(run), asyncio.get_running_loop()

    def stop() -> None:
        if not task.cancelling():
            task.cancel()
        # The terminal may be gone.
        with suppress(OSError):
            progress("Stopping the servers and PostgreSQL; this takes up to a minute")

    for signal_ in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(signal_, stop)
    return await task


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
