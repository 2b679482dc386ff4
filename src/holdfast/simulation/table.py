"""The play as it is drawn on a terminal: who does what, what is counted, what happened last."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.simulation.lines import clock
from holdfast.simulation.play import Play
from holdfast.simulation.story import Happening, Scene, Story, Tone
from holdfast.simulation.totals import COUNTED

_STYLES = {Tone.PLAIN: "", Tone.GOOD: "green", Tone.REFUSED: "yellow"}
_ALWAYS = ("holds", "racesLost", "signed", "deposits", "sales")
_LINES_AROUND = 9
_FEWEST, _MOST_SCENES, _MOST_HAPPENINGS = 3, 15, 10


def drawn(play: Play, height: int) -> RenderableType:
    """At most ``height`` lines, so that nothing is pushed out of sight."""
    room = max(2 * _FEWEST, height - _LINES_AROUND)
    happenings = min(_MOST_HAPPENINGS, max(_FEWEST, room // 2))
    scenes = min(_MOST_SCENES, max(_FEWEST, room - happenings))
    return Group(_title(play), _scenes(play.story, scenes), _counts(play), _last(play.story, happenings))


def _title(play: Play) -> Text:
    title = f"{play.ground.shown} at {play.caller.url}  {clock(play.elapsed())}  Ctrl-C stops it"
    return Text(title, style="bold", no_wrap=True, overflow="ellipsis")


def _scenes(story: Story, most: int) -> Table:
    table = Table(box=None, pad_edge=False, expand=True, header_style="dim")
    for heading, ratio in (("WHO", 3), ("UNIT", 1), ("NOW", 3), ("HOLD ENDS IN", 2)):
        table.add_column(heading, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for scene in list(story.now.values())[:most]:
        table.add_row(*_row(scene, story.elapsed()))
    if len(story.now) > most:
        table.add_row(f"and {len(story.now) - most} more", style="dim")
    return table


def _row(scene: Scene, now: float) -> tuple[str, str, str, str]:
    claim = scene.claim
    if claim is None:
        return scene.who, "", scene.doing, ""
    left = clock(max(0.0, claim.ends_at - now)) if claim.is_held and claim.ends_at is not None else ""
    return scene.who, claim.code, scene.doing, left


def _counts(play: Play) -> Text:
    story, meter = play.story, play.caller.meter
    shown = [name for name in COUNTED if name in _ALWAYS or story.counts[name]]
    counted = " · ".join(f"{COUNTED[name]} {story.counts[name]}" for name in shown)
    refused = " · ".join(f"{reason} {count}" for reason, count in sorted(story.refusals.items()))
    speed = f"{meter.per_second():.0f} requests/s · slowest {meter.slowest_ms:.0f} ms"
    return Text("\n").join(
        [
            Text(),
            Text(counted, style="bold"),
            Text(f"refused: {refused or 'nothing'}", style="yellow"),
            Text(speed, "dim"),
            Text(),
        ]
    )


def _last(story: Story, most: int) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True, overflow="ellipsis")
    for happening in list(story.last)[-most:]:
        table.add_row(clock(happening.seconds), happening.who, _told(happening))
    return table


def _told(happening: Happening) -> Text:
    return Text(happening.what, style=_STYLES[happening.tone])
