"""Makes the first screen of report.html: the answers about faults, routes, clients and cost, and a plot of the nodes
that the answers name.

answers.py ─► sentences ─┐
verdicts.json ─► cost ───┼─► a list of answers, and below it a time line of their lanes
found.py ─► places, logs ┘
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...checks import CHECKS
from ...checks.cause import first_wrong
from ...checks.check import Group
from ...verdict import Verdict, seconds
from ..answers import Answers, answers, spoken_of
from . import lanes
from .canvas import Canvas
from .found import Place, lanes_of
from .run_to_draw import RunToDraw
from .stretches import Lane

STORY = "story"
"""The section of the lanes."""
LANES_MAX = 8
PARTLY_MAX = 2


def answered(told: RunToDraw, verdicts: Sequence[Verdict]) -> Answers:
    said = answers(verdicts, told.run.scenario, told.run.name, cost=told.run.cost)
    injected = said.injected
    wrong = first_wrong(told.verdicts)
    wrong_ms = wrong.examples[0].from_ms if wrong is not None and wrong.examples else None
    fault_ms = min((fault.start_ms for fault in told.world.faults), default=math.inf)
    is_of_a_message = wrong is not None and wrong.name in CHECKS and CHECKS[wrong.name].group is Group.MESSAGES
    if wrong_ms is not None and wrong_ms < fault_ms < math.inf and not is_of_a_message:  # its time is the message's
        injected = f"{injected.rstrip('.')}. It was wrong before any fault: from {seconds(wrong_ms)} on."
    return replace(said, injected=injected)


def first_sentence(told: RunToDraw, said: Answers) -> str:
    """Return a sentence about the first violation. Without a violation, the sentence says why the run is UNKNOWN, or
    that all checks are VALID."""
    if said.first:
        return said.first
    if not told.verdicts:
        return "Nobody has judged this run."
    return "The check is VALID." if len(told.verdicts) == 1 else f"All {len(told.verdicts)} checks are VALID."


def answer_list(told: RunToDraw, said: Answers) -> list[tuple[str, str]]:
    """Return (label, sentence) pairs about the broken rule, faults, routes, clients, cost and undecided checks."""
    named = [("Broken rule", said.broken), ("Fault", said.injected), ("Routes", said.routes)]
    named += [("Drops", said.drops), ("In some topics", _in_some_topics(told))]
    named += [("Clients", said.clients), ("Cost", said.cost)]
    named += [("Not decided", line.replace(": not decided: ", ": ")) for line in said.undecided]
    return [(what, told.names(text)) for what, text in named if text]


def _in_some_topics(told: RunToDraw) -> str:
    """Return when a NameServer had a broker in some of its topics only, for longer than a registration period."""
    partly = (bar for lane in story_lanes(told) for bar in lane.bars if bar.kind == "partly")
    said = [bar.text for bar in partly if bar.end_ms - bar.start_ms > told.world.timers.R_ms]
    return f"{'; '.join(said[:PARTLY_MAX])}." if said else ""


def first_place(told: RunToDraw) -> Place | None:
    """Return the place of the first violation on the page; None if there is no violation, or no place for it."""
    wrong = first_wrong(told.verdicts)
    return next(iter(told.of_examples[wrong.name]), None) if wrong is not None else None


def story_lanes(told: RunToDraw) -> list[Lane]:
    """Return the lanes (plot rows) of the nodes that the answers name: in violations, in a broker's drop and return,
    and in the cost."""
    known = {lane.key: lane for section in ("found", "routes", "clients") for lane in told.lanes[section]}
    wanted = [key for check, example in spoken_of(told.verdicts) for key in lanes_of(check, example, known)]
    wanted += [] if told.run.cost is None else [f"{gap.client}/{gap.broker}" for gap in told.run.cost.without_broker]
    for band in told.bands:  # no finding names the nodes of a fault whose form is not known
        parts = {key: key.partition("/") for key in known}
        wanted += [key for key, (who, _, what) in parts.items() if (what or who) in band.nodes or band.nodes == [who]]
    return [known[key] for key in dict.fromkeys(wanted) if key in known][:LANES_MAX]


def story_plot(told: RunToDraw, canvas: Canvas) -> tuple[Any, Mapping[str, float]] | None:
    """Return the plot of `story_lanes`, and each lane's height on the y axis; None if there are no lanes."""
    found = story_lanes(told)
    if not found:
        return None
    name_servers = [node.name for node in told.world.of_kind("name_server")]
    plot, heights = lanes.lanes_plot(canvas, STORY, found, lanes.LANE_PX, name_servers)
    plot.xaxis.axis_label = "seconds"
    return plot, heights
