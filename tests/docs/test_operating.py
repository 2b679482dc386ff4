"""What the operator copies out of the documents fits the code: the service, and what Prometheus is told."""

import configparser
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from prometheus_client import REGISTRY

from holdfast.observability import metrics
from holdfast.server.supervisor import STOP_SECONDS
from tests.docs.commands import check_complete
from tests.docs.documents import OPERATIONS, block_beginning

METRIC = re.compile(r"\b(holdfast_\w+)(?:\{([^}]*)\})?")
OF_HISTOGRAMS = re.compile(r"_(bucket|sum|count)$")


def test_the_service_starts_a_command_that_exists_and_waits_for_its_end() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(block_beginning(OPERATIONS, "ini", "[Unit]"))
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert Path(program).name == "holdfast"
    check_complete(words)
    assert int(unit["Service"]["TimeoutStopSec"]) > STOP_SECONDS


def test_every_metric_and_label_of_the_alerts_exists() -> None:
    assert metrics.CONTENT_TYPE
    rules = _rules()
    named = [found for rule in rules for found in METRIC.findall(rule["expr"])]
    assert [name for name, _ in named if OF_HISTOGRAMS.sub("", name) not in _labels()] == []
    assert [(name, labels) for name, labels in named if not _chosen(labels) <= _labels_of(name)] == []
    assert len(named) >= len(rules) - 1


def test_every_alert_says_what_it_means() -> None:
    rules = _rules()
    assert all(rule["annotations"]["summary"].endswith(".") for rule in rules)
    assert len({rule["alert"] for rule in rules}) == len(rules)


def _rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(block_beginning(OPERATIONS, "yaml", "groups:"))["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def _labels() -> Mapping[str, tuple[str, ...]]:
    return {
        name: getattr(collector, "_labelnames", ())
        for name, collector in REGISTRY._names_to_collectors.items()
        if name.startswith("holdfast_")
    }


def _labels_of(name: str) -> set[str]:
    return {*_labels()[OF_HISTOGRAMS.sub("", name)], "le"}


def _chosen(labels: str) -> set[str]:
    return set(re.findall(r"(\w+)[=!]", labels))
