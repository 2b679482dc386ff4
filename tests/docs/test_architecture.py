"""The diagrams of architecture.md say what the code says."""

import ast
import re
import tomllib
from graphlib import TopologicalSorter

import grimp
import pytest

from holdfast.domain import delivery
from holdfast.domain.delivery import DeliveryStatus, Outcome, Progress, Schedule, decide_after_attempt
from tests.docs.documents import ARCHITECTURE, ROOT, blocks

ARROW = re.compile(r"^(\S+) +── (.+?) ─*► (\w+)$")
STEP = re.compile(r"^  ([\w/]+\.py) +([\w.]+)", re.MULTILINE)
STATUS_AFTER = {
    Outcome.DELIVERED: DeliveryStatus.DELIVERED,
    Outcome.RETRY: DeliveryStatus.PENDING,
    Outcome.FAILED: DeliveryStatus.FAILED,
}


def diagram(marker: str) -> str:
    start = ARCHITECTURE.read_text().index(f"<!-- {marker} -->")
    return next(block.text for block in blocks(ARCHITECTURE) if block.start > start)


def test_the_layers_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = (one for one in contracts if one["type"] == "layers")
    enforced = [
        {name.strip().removeprefix("holdfast.") for name in layer.split("|")} for layer in contract["layers"]
    ]
    shown = [set(re.split(r" {2,}", line)[0].split(", ")) for line in diagram("layers").splitlines()]
    assert shown == enforced


def test_no_module_imports_itself_through_others() -> None:
    """Neither at run time nor for types."""
    graph = grimp.build_graph("holdfast", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()


@pytest.mark.parametrize(("path", "name"), STEP.findall(diagram("put")))
def test_every_function_on_the_path_of_a_put_is_in_its_file(path: str, name: str) -> None:
    node: ast.AST = ast.parse((ROOT / "src" / "holdfast" / path).read_text())
    for part in name.split("."):
        named = (one for one in ast.iter_child_nodes(node) if getattr(one, "name", None) == part)
        node = next(named)
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def test_the_life_of_a_delivery_has_every_status_and_no_other() -> None:
    named = {status for source, _, target in _arrows() for status in (source, target)} - {"(new)"}
    assert named == set(DeliveryStatus)


@pytest.mark.parametrize(
    ("label", "succeeded", "tried"),
    [("2xx", True, 0), ("failure, attempts left", False, 0), ("failure, last attempt", False, 7)],
)
def test_after_an_attempt_a_delivery_is_where_the_arrow_leads(
    label: str, succeeded: bool, tried: int
) -> None:
    decided = decide_after_attempt(Progress(1, tried, tried), succeeded, Schedule(attempts=8))
    assert _targets("pending", label) == [STATUS_AFTER[decided.outcome]]


@pytest.mark.parametrize(
    ("label", "reason"),
    [("endpoint removed", delivery.ENDPOINT_REMOVED), ("event unselected", delivery.EVENT_UNSELECTED)],
)
def test_a_pending_delivery_is_cancelled_for_a_known_reason(label: str, reason: str) -> None:
    assert reason.endswith(".")
    assert _targets("pending", label) == [DeliveryStatus.CANCELLED]


def test_whatever_has_ended_can_be_sent_again() -> None:
    ended = {source for source, label, target in _arrows() if (label, target) == ("resend", "pending")}
    assert ended == set(DeliveryStatus) - {DeliveryStatus.PENDING}


def _arrows() -> list[tuple[str, str, str]]:
    found = [ARROW.match(line) for line in diagram("delivery").splitlines()]
    assert None not in found
    return [(arrow[1], arrow[2], arrow[3]) for arrow in found if arrow]


def _targets(source: str, label: str) -> list[str]:
    return [target for start, text, target in _arrows() if (start, text) == (source, label)]
