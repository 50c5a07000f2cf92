"""The causes for which a client finds no usable route of a topic. inferring/causes.toml has the causes' texts.

    answer_causes.py   finds them in the answers of a live cluster  ─┬─► cause(name, …) ─► NoRouteCause ─► doctor.py
    log_causes.py      finds them in logs                           ─┘

A cause is certain if the observations allow no other explanation; else the cause is likely. The placeholder `{how}` in
a cause's text stands for the observation. Upstream: RouteInfoManager,
MQClientInstance.updateTopicRouteInfoFromNameServer, TopicConfigManager.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ...chaos.reports.text import all_of
from ..inferring import said

CAUSES = {name: about for name, about in said.CAUSES.items() if about.shows}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoRouteCause:
    name: str
    """Short name for programs, one of CAUSES."""
    certain: bool
    about: tuple[str, ...]
    """What is at fault: addresses of NameServers, broker names, client ids."""
    sentence: str
    """What is wrong, and where."""
    then: str
    """The remedy."""
    lines: tuple[str, ...] = ()
    """`FILE:LINE` of its log lines, if it was found in logs."""

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        return found if self.lines else {name: value for name, value in found.items() if name != "lines"}


def cause(name: str, *about: str, certain: bool = True, lines: Iterable[str] = (), **words: object) -> NoRouteCause:
    """Return the cause called `name` in causes.toml; `words` replace the placeholders in the cause's text."""
    sentence = CAUSES[name].shows.format(**words)
    return NoRouteCause(
        name=name, certain=certain, about=about, sentence=sentence, then=CAUSES[name].remedy, lines=tuple(lines)
    )


def in_order(found: Iterable[NoRouteCause]) -> list[NoRouteCause]:
    once = {(each.name, each.about, each.sentence): each for each in reversed([*found])}
    return sorted(reversed(once.values()), key=lambda each: not each.certain)


def numbered_lines(found: Iterable[NoRouteCause]) -> list[str]:
    """Return the causes as numbered lines of text, each with its remedy."""
    lines = []
    for number, each in enumerate(found, 1):
        lines += [
            f"{number}. {'' if each.certain else 'likely: '}{each.sentence}",
            f"   {each.then}  [{each.name}]",
            *([f"   {' '.join(each.lines)}"] if each.lines else []),
        ]
    return lines


def not_created(brokers: Iterable[object], **more: Any) -> NoRouteCause:
    names = [*map(str, brokers)]
    have = "has" if len(names) == 1 else "have"
    return cause("topics-are-not-created", *names, brokers=all_of(names), have=have, **more)
