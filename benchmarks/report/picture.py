"""The findings as bars, one panel a part, with the ratio written at each bar."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.report.findings import Finding

OURS_AT_ITS_BEST = "Holdfast, 2 processes"
OURS, THEIRS, LIMIT, INK, FAINT = "#0f766e", "#cbd5e1", "#94a3b8", "#0f172a", "#64748b"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans", "font.size": 10, "text.color": INK, "axes.edgecolor": LIMIT,
    "axes.labelcolor": FAINT, "xtick.color": FAINT, "ytick.color": INK, "axes.spines.top": False,
    "axes.spines.right": False, "axes.spines.left": False, "ytick.left": False, "axes.axisbelow": True,
    "axes.grid": True, "axes.grid.axis": "x", "grid.color": "#e2e8f0",
}  # fmt: skip
PROMISED = {"bulk": 15_000, "lapse": 1, "idle": 120, "delivery_latency": 1}
PER_SECOND = "deliveries per second, more is better"
Bar = tuple[str, float, str, str]  # name, length, what is written at its end, colour


def draw(path: Path, machine: dict[str, str], findings: list[Finding]) -> bool:
    """Whether there was anything to draw: some parts are tables alone."""
    panels = [(finding, PANELS[finding.name]) for finding in findings if finding.name in PANELS]
    if not panels:
        return False
    bars = [len(panel(finding.figures)[1]) for finding, panel in panels]
    with plt.rc_context(STYLE):
        heights = [count + 1.6 for count in bars]
        figure, axes = plt.subplots(
            len(panels), 1, figsize=(10, 0.42 * sum(heights) + 1.2), squeeze=False, layout="constrained",
            gridspec_kw={"height_ratios": heights},
        )  # fmt: skip
        for axis, (finding, panel) in zip(axes[:, 0], panels, strict=True):
            label, drawn = panel(finding.figures)
            _bars(axis, finding.title, label, drawn)
            _promise(axis, PROMISED.get(finding.name))
        facts = f"{machine['cores']} cores, PostgreSQL {machine['PostgreSQL']}, {machine['date']}"
        figure.suptitle(f"Holdfast, its peers and the bare database ({facts})", fontsize=13, weight="bold")
        figure.savefig(path, dpi=140, facecolor="white", metadata={"Software": None})
        plt.close(figure)
    return True


def _bars(axis: Axes, title: str, label: str, bars: list[Bar]) -> None:
    names, lengths, texts, colours = zip(*bars, strict=True)
    drawn = axis.barh(range(len(bars)), lengths, color=colours, height=0.68)
    plain = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
    axis.bar_label(drawn, labels=texts, padding=6, fontsize=9.5, bbox=plain, zorder=3)
    axis.set_yticks(range(len(bars)), names)
    axis.invert_yaxis()
    axis.set_xlim(0, max(lengths) * 1.42)
    axis.set_title(title, loc="left", fontsize=11, weight="bold")
    axis.set_xlabel(label, loc="right", fontsize=9)
    axis.xaxis.set_major_formatter(lambda number, _: f"{number:,.10g}")


def _promise(axis: Axes, bound: float | None) -> None:
    if bound is not None:
        axis.axvline(bound, color=INK, linestyle=(0, (4, 3)), linewidth=1)
        axis.set_xlim(0, max(bound * 1.05, axis.get_xlim()[1]))


def _colour(name: str) -> str:
    return OURS if name.startswith("Holdfast") else LIMIT if name.startswith("pgbench") else THEIRS


def _put(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    ours = figures[OURS_AT_ITS_BEST]["per_second"]
    ranked = sorted(figures.items(), key=lambda item: -item[1]["per_second"])
    return "PUT per second, more is better", [
        (name, figure["per_second"], _beside(name, figure["per_second"], ours), _colour(name))
        for name, figure in ranked
    ]


def _beside(name: str, per_second: float, ours: float) -> str:
    ratio = "" if name == OURS_AT_ITS_BEST else f"   Holdfast is {ours / per_second:.3g}×"
    return f"{per_second:,.0f}{ratio}"


def _latency(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    plain = figures["plain asyncpg handler"]["p50_ms"]
    ranked = sorted(figures.items(), key=lambda item: item[1]["p50_ms"])
    return "p50 in milliseconds, less is better", [
        (name, figure["p50_ms"], f"{figure['p50_ms']:.2f}   {figure['p50_ms'] / plain:.2f}×", _colour(name))
        for name, figure in ranked
    ]


def _bulk(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    kinds = {"application/x-ndjson": "NDJSON", "application/json": "array"}
    return "units per second, more is better; dashed: the target", [
        (f"{kinds[one['media_type']]}, {one['outcome']}", one["per_second"],
         f"{one['per_second']:,.0f}   {one['per_second'] / 15_000:.2f}× the target", OURS)
        for one in figures["passes"]
    ]  # fmt: skip


def _growth(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    bars = []
    for name, sizes in figures.items():
        if name == "falls":
            continue
        first = next(iter(sizes.values()))["per_second"]
        for units, figure in sizes.items():
            kept = f"{figure['per_second']:,.0f}   {100 * figure['per_second'] / first:.0f} %"
            label = f"{name.partition(',')[0]}, {int(units):,} units"
            bars.append((label, figure["per_second"], kept, _colour(name)))
    return "PUT per second, more is better", bars


def _list(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    return "median milliseconds, less is better", [
        (
            f"{name}, {place}",
            figure[place],
            f"{figure[place]:.2f}   {figure[place] / figure['start']:.2f}×",
            OURS,
        )
        for name, figure in figures.items()
        for place in ("start", "end")
    ]


def _beside_each_other(label: str, yardstick: str) -> Callable[[dict[str, Any]], tuple[str, list[Bar]]]:
    """Two or more that differ in what is asked of the same server."""

    def panel(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
        measure = figures[yardstick]["per_second"]
        return label, [
            (name, figure["per_second"], _share(figure["per_second"], measure), _against(name, yardstick))
            for name, figure in sorted(figures.items(), key=lambda item: item[0] != yardstick)
        ]

    return panel


def _share(per_second: float, measure: float) -> str:
    return f"{per_second:,.0f}   {per_second / measure:.2f}×"


def _against(name: str, yardstick: str) -> str:
    return LIMIT if name == yardstick else OURS


def _deliveries(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    """Beside the bare loop at its best."""
    ranked = sorted(figures.items(), key=lambda item: -item[1]["per_second"])
    best = next(figure["per_second"] for name, figure in ranked if not name.startswith("Holdfast"))
    return PER_SECOND, [
        (name, figure["per_second"], _share(figure["per_second"], best), _colour(name))
        for name, figure in ranked
    ]


def _isolation(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    alone = next(iter(figures.values()))["p99_ms"]
    return "p99 in milliseconds of the healthy ones, less is better", [
        (name, figure["p99_ms"], f"{figure['p99_ms']:.1f}   {figure['p99_ms'] / alone:.2f}×", OURS)
        for name, figure in figures.items()
    ]


def _lapse(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    """Times of very different sizes, so each is drawn as a share of what is promised for it."""
    timed = [one for one in figures["promised"] if one[3] in (" s", " ms")]
    return "share of the time promised, less is better; dashed: the promise", [
        (text, measured / bound, f"{measured:,.3g}{unit} of {bound:g}{unit}", OURS)
        for text, measured, bound, unit in timed
    ]


def _idle(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    return "resident MB, less is better; dashed: the target for web", [
        (name, resident / 1e6, f"{resident / 1e6:.0f}", OURS) for name, resident in figures.items()
    ]


def _pages(figures: dict[str, Any]) -> tuple[str, list[Bar]]:
    """The slowest, which the others need not be compared with."""
    ranked = sorted(figures.items(), key=lambda item: -item[1]["p95_ms"])[:8]
    return "p95 in milliseconds of the slowest pages, less is better; dashed: the target", [
        (name, figure["p95_ms"], f"{figure['p95_ms']:.0f}", OURS) for name, figure in ranked
    ]


PANELS: dict[str, Callable[[dict[str, Any]], tuple[str, list[Bar]]]] = {
    "put": _put,
    "latency": _latency,
    "bulk": _bulk,
    "growth": _growth,
    "list": _list,
    "holds": _beside_each_other("requests per second, more is better", "PUT"),
    "contention": _beside_each_other("answers per second, more is better", "GET of the same unit"),
    "lapse": _lapse,
    "idle": _idle,
    "deliveries": _deliveries,
    "delivery_workers": _beside_each_other(PER_SECOND, "Holdfast, 1 worker process"),
    "delivery_latency": _lapse,
    "isolation": _isolation,
    "delivery_growth": _beside_each_other(PER_SECOND, "empty"),
    "pages": _pages,
}
