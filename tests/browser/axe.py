"""axe-core, run in the page. It comes in by the debugger's door, which no content policy closes."""

from functools import cache
from importlib.resources import files
from typing import Any, Literal

from playwright.sync_api import Page

STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
# To compute contrasts takes most of axe's time.
COLOURS = ["color-contrast", "link-in-text-block"]
Rules = Literal["all", "structure", "colours"]
NODES_TOLD = 3
"""Of each rule: where one row breaks it, all do."""
# The first of many are like the rest.
_REPEATED = ["tbody > tr:nth-child(n+13)", ".timeline > li:nth-child(n+13)", ".floor:nth-child(n+5)"]
_RUN = "([context, options]) => axe.run(context, options)"


def axe_faults(page: Page, rules: Rules = "all") -> list[str]:
    """A line for each element that breaks a rule."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_script())
    only = {"type": "rule", "values": COLOURS} if rules == "colours" else {"type": "tag", "values": STANDARDS}
    # A fault shows the element's HTML; to compute a selector for each takes longer than the rules.
    options: dict[str, Any] = {"runOnly": only, "resultTypes": ["violations"], "selectors": False}
    if rules == "structure":
        options["rules"] = {rule: {"enabled": False} for rule in COLOURS}
    found = page.evaluate(_RUN, [{"exclude": [[selector] for selector in _REPEATED]}, options])
    return [_line(rule, node) for rule in found["violations"] for node in rule["nodes"][:NODES_TOLD]]


@cache
def _script() -> str:
    return (files("axe_playwright_python") / "axe.min.js").read_text()


def _line(rule: dict[str, Any], node: dict[str, Any]) -> str:
    why = "; ".join(check["message"] for check in (*node["any"], *node["all"], *node["none"]))
    return f"{rule['id']}: {node['html'][:200]} ({why})"
