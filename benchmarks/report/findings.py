"""What a part found, in a form that goes to JSON and back."""

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """A promise and what was measured. A missed one is displayed as missed."""

    text: str
    measured: float
    bound: float
    at_least: bool
    unit: str = "×"

    @property
    def met(self) -> bool:
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    @property
    def promise(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:,.10g}{self.unit}"

    @property
    def outcome(self) -> str:
        digits = 0 if self.measured >= 1000 else 2
        return f"{self.measured:,.{digits}f}{self.unit}"


@dataclass(frozen=True, slots=True)
class Table:
    columns: list[str]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    title: str
    tables: list[Table]
    targets: list[Target]
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Finding":
        tables = [Table(**table) for table in stored["tables"]]
        targets = [Target(**target) for target in stored["targets"]]
        return cls(stored["name"], stored["title"], tables, targets, stored["figures"])
