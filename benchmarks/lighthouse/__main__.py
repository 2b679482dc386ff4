"""``make lighthouse``: how Lighthouse rates the pages of a buyer on a phone.

A demo is started, a unit is held, and Lighthouse loads the pages of the project, of a unit and of the booking
by turns. The median of the scores counts. The command ends with 0 when every target is met, with 1 otherwise.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import httpx

from benchmarks import machine
from benchmarks.processes import answers, free_port, running
from benchmarks.progress import Progress
from benchmarks.report import archive, text
from benchmarks.report.findings import Finding, Table, Target

COMMAND = Path(sys.prefix) / "lighthouse" / "node_modules" / ".bin" / "lighthouse"
HOLDFAST = Path(sys.prefix) / "bin" / "holdfast"
RESULTS = Path(__file__).parents[1] / "results" / "lighthouse"
MOST_TRIES = 5
LOWEST = {"performance": 90, "accessibility": 95, "best-practices": 95, "seo": 95}
PROJECT = "/p/narjis-heights"
UNIT = f"{PROJECT}/units/A-0604"
# As root Chromium needs the first; the others keep it from talking to anybody but the server.
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
)
CAPTION = (
    "Medians of {runs} runs as a phone with a slow connection. The page of a booking is its buyer's alone and"
    " asks search engines not to list it, which Lighthouse counts as half of SEO."
)
_FORM_TOKEN = re.compile(r'name="csrf" value="([^"]+)"')

Scores = dict[str, float]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lighthouse", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each page (5)")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder to write to")
    asked = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None or not COMMAND.exists():
        print("Lighthouse needs Chromium and Node.js: apt install chromium nodejs npm", file=sys.stderr)
        return 2
    about = machine.hardware() | {"Chromium": _version(chromium), "Lighthouse": _version(str(COMMAND))}
    with tempfile.TemporaryDirectory(prefix="holdfast-lighthouse-") as folder, _demo(Path(folder)) as url:
        finding = _measure(url, Path(folder), chromium, asked.runs)
    print(text.show(finding), flush=True)
    archive.keep(asked.results, about, "make lighthouse", [finding])
    return 0 if all(target.met for target in finding.targets) else 1


def _version(program: str) -> str:
    shown = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\d[\d.]+", shown)[0]


@contextmanager
def _demo(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [str(HOLDFAST), "serve", "--demo", "--port", str(port), "--data", str(folder / "data")]
    with running(command, {"HOLDFAST_HOLD_SECONDS": "3600"}, folder / "demo.log", lambda: answers(port)):
        yield f"http://127.0.0.1:{port}"


def _measure(url: str, folder: Path, chromium: str, runs: int) -> Finding:
    progress, booking, cookies = Progress(), *_held(url)
    pages = {"project": PROJECT, "unit": UNIT.replace("04", "03"), "booking": booking}
    scores: dict[str, list[Scores]] = {name: [] for name in pages}
    for number in range(1, runs + 1):
        for name, path in pages.items():
            progress(f"lighthouse: {name} page, run {number} of {runs}")
            scores[name].append(_rate(url + path, cookies, folder / "report.json", chromium))
    progress.done()
    medians = {
        name: {category: median(run[category] for run in page) for category in LOWEST}
        for name, page in scores.items()
    }
    rows = [[f"{name} page", *(f"{value:.0f}" for value in page.values())] for name, page in medians.items()]
    targets = [
        Target(f"{name} page, {category}", page[category], lowest, at_least=True, unit="")
        for name, page in medians.items()
        for category, lowest in LOWEST.items()
    ]
    table = Table(["page", *LOWEST], rows, CAPTION.format(runs=runs))
    return Finding("lighthouse", "The pages of a buyer", [table], targets, {"scores": scores})


def _held(url: str) -> tuple[str, str]:
    """Hold a unit; return the path of the booking's page and the cookies of the buyer."""
    with httpx.Client(base_url=url, trust_env=False) as buyer:
        # The client would send these cookies over https only; browsers make an exception for this machine.
        page = buyer.get(UNIT)
        cookies = dict(page.cookies)
        form = {"csrf": _FORM_TOKEN.findall(page.text)[0]}
        held = buyer.post(f"{UNIT}/hold", data=form, headers={"Cookie": _header(cookies)})
        assert held.status_code == 303, held.text
        return held.headers["location"], _header(cookies | dict(held.cookies))


def _header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def _rate(address: str, cookies: str, report: Path, chromium: str) -> Scores:
    headers = json.dumps({"Cookie": cookies})
    command = [str(COMMAND), address, "--quiet", "--output=json", f"--output-path={report}"]
    command += [f"--chrome-flags={FLAGS}", f"--extra-headers={headers}"]
    # A busy machine may lose the trace of a load, which Lighthouse answers by asking for another run.
    for _ in range(MOST_TRIES):
        tried = subprocess.run(command, env=os.environ | {"CHROME_PATH": chromium}, check=False)
        if tried.returncode == 0:
            break
    tried.check_returncode()
    categories = json.loads(report.read_text())["categories"]
    return {name: categories[name]["score"] * 100 for name in LOWEST}


if __name__ == "__main__":
    sys.exit(main())
