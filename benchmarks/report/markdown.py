"""The findings as a page."""

from benchmarks.report.findings import Finding, Table, Target

INTRODUCTION = """# Benchmark results

Written by `make bench`; what is measured and how is in [the notes](../README.md). All contestants share one
machine, one PostgreSQL with durable commits, and the same load; read the ratios, not the absolute numbers.
"""


def page(machine: dict[str, str], command: str, findings: list[Finding], picture: str | None) -> str:
    facts = "\n".join(f"- {name}: {text}" for name, text in {**machine, "command": f"`{command}`"}.items())
    targets = [target for finding in findings for target in finding.targets]
    drawn = [f"![The results as bars]({picture})"] if picture else []
    sections = [INTRODUCTION, facts, *drawn, "## Targets", _targets(targets)]
    for finding in findings:
        sections.append(f"## {finding.title}")
        sections += [_table(table) for table in finding.tables]
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _targets(targets: list[Target]) -> str:
    rows = [[t.text, t.promise, t.outcome, "met" if t.met else "**missed**"] for t in targets]
    return _table(Table(["target", "promised", "measured", ""], rows))


def _table(table: Table) -> str:
    lines = [table.columns, ["---"] + ["---:"] * (len(table.columns) - 1), *table.rows]
    drawn = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{drawn}\n\n{table.caption}" if table.caption else drawn
