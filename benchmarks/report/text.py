"""The findings for a terminal."""

from benchmarks.report.findings import Finding, Table


def show(finding: Finding) -> str:
    parts = [f"\n{finding.title}", *(_table(table) for table in finding.tables)]
    parts += [
        f"  {'met   ' if target.met else 'MISSED'}  {target.text}: {target.outcome} ({target.promise})"
        for target in finding.targets
    ]
    return "\n".join(parts)


def _table(table: Table) -> str:
    lines = [table.columns, *table.rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.columns))]
    drawn = ["  " + "  ".join(_cell(line, column, widths) for column in range(len(widths))) for line in lines]
    return "\n".join([*drawn, f"  {table.caption}"] if table.caption else drawn)


def _cell(line: list[str], column: int, widths: list[int]) -> str:
    return line[column].ljust(widths[column]) if column == 0 else line[column].rjust(widths[column])
