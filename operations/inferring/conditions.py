"""Weighs the causes of trouble that log lines state, or that a complete log shows, against each other. Pure: no I/O.

conditions(said) ─► Condition: cause, certainty, count, strongest lines, sentence, remedy
no_broker(found, texts) ─► NameServers with which no broker ever registered
episodes_said(found, texts, faults) ─► the same as episodes of an import
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...chaos.oracle.intervals import grouped
from ..logs_to_rows.reconstruct import Reconstructed
from ..logs_to_rows.sources import CLIENT, NAME_SERVER, client_named
from . import telling
from .said import BY_WORDS, CAUSES, KEPT, OF_OTHERS, Cause, Said, Texts
from .telling import AT_MOST, LIKELY_AT_MOST, Episode, Hypothesis, named_in, score_of
from .words import ANYBODYS, RANK

CERTAIN, ALONE, LIKELY = 0.992, 0.6, 0.5
"""Share of the total likelihood from which a cause is called certain; share from which a fault keeps its own score,
because other causes then are its effects; score from which a cause is called likely."""
WORDS_AT_MOST = 0.52
"""Highest score of a cause that only words suggest: so often were these right in unseen logs (docs/import.md)."""
UNKNOWN, NOTHING = "unknown", "nothing"
AGAIN, AGAIN_AT_MOST = 0.5, 3.5
"""A line that is there n times weighs this times ln n more, at most the second."""
LINES = 3
BECAUSE, NEAR = 2.0, 16
"""A cause weighs so much less if another cause so many lines on in the same stack trace is its reason."""
NO_BROKER_MS = 90_000.0
"""A NameServer without a broker for less may wait for brokers that are being started."""


@dataclass(slots=True)
class Condition:
    """A cause of the trouble. The likeliest is doctor's answer."""

    name: str
    """For programs: a cause, `nothing` or `unknown`."""
    weight: float
    times: int = 0
    sentence: str = ""
    then: str = ""
    """The remedy, or the logs to add."""
    lines: Sequence[tuple[str, str]] = field(default_factory=list)
    """`FILE:LINE` and its text, strongest first."""
    is_over: bool = False
    """Whether it ended within the logs; in an answer, and no client's log shows that it was affected."""
    share: float = 0.0
    """The cause's share of the total likelihood, unknown cause included; for `unknown`, that of the likeliest cause."""
    score: float = 0.0
    """How often a cause with this share is right."""
    of_fault: float = 0.0
    """The score of the fault that it is, which an import says."""
    forms: Sequence[str] = ()
    """The fault's other possible forms, such as a fault in one direction."""
    others: Sequence[Condition] = ()
    """In an answer: the other causes, likeliest first."""
    zones: Mapping[str, str] = field(default_factory=dict)
    """In an answer: the zone of each file whose lines have another zone than the answer's times."""

    @property
    def certainty(self) -> str:
        if self.name == UNKNOWN or self.score < LIKELY:
            return "unsure"
        return "certain" if self.score > LIKELY_AT_MOST else "likely"

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "certainty": self.certainty,
            "score": round(self.score, 3),
            "sentence": self.sentence,
            "then": self.then,
            "lines": [{"where": where, "text": text} for where, text in self.lines],
            "others": [{"name": one.name, "score": round(one.score, 3)} for one in self.others],
        }

    @property
    def told(self) -> list[str]:
        sure = f"{self.certainty} ({self.score:.2f})"
        head = self.sentence if self.name == UNKNOWN else f"{sure}: {self.sentence}"
        told = [head, *(f"   {self._placed(where)}  {text}".rstrip() for where, text in self.lines)]
        told.append(f"   -> {self.then}")
        if self.is_over and self.name not in (UNKNOWN, NOTHING):
            told.append("   It was over when the logs ended. No client's log that reaches it tells of trouble by it.")
        told += [f"   {form}" for form in self.forms]
        others = [
            f"{one.name} ({one.score:.2f})"
            for one in self.others
            if one.score >= 0.05 and one.sentence not in self.sentence
        ]
        return [*told, *([f"   or: {', '.join(others)}"] if others else [])]

    def _placed(self, where: str) -> str:
        zone = self.zones.get(where.rpartition(":")[0])
        return f"{where} (UTC{zone})" if zone else where


def conditions(said: Iterable[Said], times: Mapping[str, int] | None = None) -> list[Condition]:
    """Return the causes that log lines state, each with its evidence. `times` has the number of lines of each cause, if
    not all lines were kept."""
    by_cause = grouped((one.cause, one) for one in said)
    found = [_condition(cause, lines) for cause, lines in by_cause.items()]
    for each in found:
        if each.times >= KEPT and times is not None:
            each.times = times[each.name]
        if any(_is_reason(by_cause[other.name], by_cause[each.name]) for other in found):
            each.weight -= BECAUSE
    return found


def not_belied(said: Iterable[Said], found: Reconstructed) -> list[Said]:
    """Return the causes without those of another cluster's logs, and without what other lines disprove: "no NameServer
    named at boot" of brokers that fetch their list and do register, and "no such topic", which a broker logs before it
    creates the topic. Clients that leave a NameServer are none: it keeps nothing of theirs."""
    registers = set[str]()
    created = set[str]()
    servers = {file for source in found.found if source.kind == NAME_SERVER for file in source.files}
    for source in found.found:
        if any(line.event in ("registered", "name_servers_fetched", "name_servers_set") for line in source.lines):
            registers |= {*source.files}
        configs = (line.fields.get("config", "") for line in source.lines if line.event == "topic_created")
        created |= {name[1] for config in configs if (name := re.search(r"topicName=([^,\]]+)", config))}
    return [
        one
        for one in said
        if one.file not in found.left_out
        and not (one.cause == "no-name-server-given" and one.file in registers)
        and not (one.cause == "client-gone" and one.file in servers)
        and not (one.cause == "topic-is-nowhere" and created & {*re.findall(r"[\w%-]+", one.text)})
    ]


def in_words(said: Iterable[Said]) -> list[Condition]:
    """Return the causes that the words of error lines suggest. The cause nearest to a root cause weighs most. If any
    line mentions RocketMQ, other programs' lines about unreachable peers are ignored."""
    lines = list(said)
    ours = [one for one in lines if one.weight >= BY_WORDS]
    told = [one for one in lines if one.weight >= BY_WORDS or one.cause in ANYBODYS] if ours else lines
    found = sorted(conditions(told), key=lambda one: (-RANK.get(one.name, 0), -one.times))
    for place, one in enumerate(found):
        one.weight = (BY_WORDS if ours else OF_OTHERS) - BESIDE_WORDS * min(place, 1)
    return found


BESIDE_WORDS = 4.0


def _is_reason(lines: Sequence[Said], of: Sequence[Said]) -> bool:
    """Whether every line of the other cause has one of these lines in its stack trace, as its reason."""
    caused = [(one.file, one.line) for one in lines if one.text.startswith("Caused by")]
    return all(any(file == one.file and 0 < line - one.line <= NEAR for file, line in caused) for one in of)


def _condition(cause: str, lines: Sequence[Said]) -> Condition:
    best = sorted(lines, key=lambda one: (-one.weight, one.file, one.line))
    weight = best[0].weight + min(AGAIN_AT_MOST, AGAIN * math.log(len(lines)))
    protocols = CAUSES[cause].protocols
    details = Counter(one.detail for one in lines if one.detail and one.detail != "null")
    detail = details.most_common(1)[0][0] if details else ""
    is_stated = best[0].weight > BY_WORDS
    words = {
        "calls": "requests" if all(_IS_REQUEST.search(one.text) for one in lines) else "connections",
        "address": detail or _unnamed(cause, is_null=any(one.detail == "null" for one in lines)),
        "used": f" ({float(detail):.0%} in use)" if cause == "disk-full" and detail else "",
        "said": f" ({protocols[detail]})" if detail in protocols else "",
        "named": f" ({detail})" if detail else "",
        "length": detail,
        "seconds": detail,
    }
    sentence, remedy, *_ = CAUSES[cause]
    remedy = " ".join(filter(None, [remedy, CAUSES[cause].once_stated if is_stated else ""]))
    times = len({one.where for one in lines})
    return Condition(cause, weight, times, sentence.format(**words), remedy, _strongest(best))


_IS_REQUEST = re.compile(r"send request to |call timeout")
"""A request failed on a connection, or before there was one."""


def _unnamed(cause: str, *, is_null: bool) -> str:
    """The words in place of an unknown address in a cause's sentence. A client logs `connect to null` if the client
    chose no address of its list (which may be empty)."""
    if cause.startswith("name-server"):
        return "of its list, which may be empty," if is_null else "of its list"
    return "that these lines do not name" if cause.startswith("broker") else "an address that these lines do not name"


def _strongest(best: Sequence[Said]) -> list[tuple[str, str]]:
    first = {(one.file, one.text[24:80]): one for one in reversed(best)}
    kept = sorted(first.values(), key=lambda one: (-one.weight, one.file, one.line))
    chosen = [*kept, *(one for one in best if one not in kept)][:LINES]
    return [(one.where, one.text) for one in chosen]


FOLLOWS = 4.0
"""An effect weighs so much less beside a root cause that is as heavy, or of this weight, and beside a likelier twin."""


def shared(found: Iterable[Condition]) -> list[Condition]:
    """Set each cause's share of the total likelihood and its score. Returns the causes, likeliest first."""
    told = list(found)
    weights = {one.name: one.weight for one in told}
    for one in told:
        about, least = CAUSES.get(one.name, Cause()), min(FOLLOWS, weights[one.name])
        is_effect = any(weights.get(root, 0.0) >= least for root in about.roots)
        if is_effect or weights.get(about.twin, 0.0) > weights[one.name]:
            one.weight -= FOLLOWS
    ordered = sorted(told, key=lambda one: -one.weight)
    total = math.exp(telling.UNKNOWN) + sum(math.exp(one.weight) for one in ordered)
    for one in ordered:
        one.share = one.score = math.exp(one.weight) / total
    for first in ordered[:1]:
        said = score_of(first.share, sum(one.share for one in ordered[1:]))
        for one in ordered[1:]:
            one.score *= (1 - said) / (1 - first.share)
        first.score = AT_MOST if first.share >= CERTAIN else min(LIKELY_AT_MOST, said)
        if ALONE <= first.share < CERTAIN:
            first.score = max(first.score, min(LIKELY_AT_MOST, first.of_fault))
    return ordered


_REGISTRATIONS = frozenset(
    {"broker_registered", "master_address", "topic_registered", "topic_changed", "broker_expired", "channel_destroyed"}
)


def no_broker(found: Reconstructed, texts: Texts) -> Iterator[Condition]:
    """Return the cause "no broker registered" for each NameServer whose log begins with its start, lasts at least
    NO_BROKER_MS, and has no registration."""
    for source in found.found:
        boots = [line for line in source.lines if line.event == "name_server_boot"]
        if source.kind != NAME_SERVER or not boots or any(line.event in _REGISTRATIONS for line in source.lines):
            continue
        lasts_ms = max(texts.lasts_ms(file) for file in source.files)
        if lasts_ms < NO_BROKER_MS:
            continue
        sentence, remedy, *_ = CAUSES["no-broker-registered"]
        said = sentence.format(server=source.name, span=_span(lasts_ms))
        weight = min(7.5, 4.0 + math.log(lasts_ms / NO_BROKER_MS))
        where = f"{boots[0].file}:{boots[0].line}"
        yield Condition("no-broker-registered", weight, 1, said, remedy, [(where, "")])


def dropped(found: Reconstructed) -> Iterator[Condition]:
    """Return a cause for each broker that a NameServer dropped, though it had not unregistered. It is over if the
    broker came back."""
    by_broker = grouped(((row["node"], row.get("broker_name")), row) for row in found.rows if row["event"] in _COMES)
    for (server, broker), rows in by_broker.items():
        drops = [row for row in rows if _is_drop(row)]
        if not broker or not drops:
            continue
        last, times = drops[-1], "" if len(drops) == 1 else f" {len(drops)} times"
        back_ms = next((row["time_ms"] for row in rows[rows.index(last) :] if row["event"] == "registration"), None)
        after = "it did not come back there"
        if back_ms is not None:
            after = f"it was back {(back_ms - last['time_ms']) / 1000:.0f} s later"
        who = f"{broker} ({last['address']}){times} ({last['value']['reason']})"
        said = f"{server} dropped {who}, which did not leave, and {after}."
        lines = [(f"{row['value']['file']}:{row['value']['line']}", "") for row in drops[-LINES:]]
        remedy = CAUSES["broker-is-not-registered"].remedy
        yield Condition("broker-is-not-registered", DROPPED, 1, said, remedy, lines, is_over=back_ms is not None)


_COMES = ("registration", "broker_dropped")


def _is_drop(row: Mapping[str, Any]) -> bool:
    """Whether a line of a log says that a broker was dropped, and the broker had not unregistered."""
    value = row.get("value") or {}
    return row["event"] == "broker_dropped" and value.get("reason") != "unregistered" and "file" in value


DROPPED = 4.0
SET_BACK_MS, STEPS, AROUND = 60_000.0, 2, 6
"""Least step back, most steps per log, and lines around a step; otherwise the log was pasted together."""


def clock_set_back(found: Reconstructed) -> Iterator[Condition]:
    """Return the cause "clock set back" for each log whose time stamps jump back without a restart of the process."""
    for source in found.found:
        by_file = grouped((line.file, line) for line in source.lines)
        for lines in by_file.values():
            lines.sort(key=lambda line: line.line)
            steps = [at for at in range(1, len(lines)) if lines[at].stamp_ms < lines[at - 1].stamp_ms - SET_BACK_MS]
            if not 1 <= len(steps) <= STEPS or steps[0] < AROUND or len(lines) - steps[-1] < AROUND:
                continue
            if any(line.event in _STARTS for at in steps for line in lines[at : at + AROUND]):
                continue
            before, after = lines[steps[0] - 1], lines[steps[0]]
            sentence, remedy, *_ = CAUSES["clock-set"]
            said = sentence.format(who=source.name, by_s=(before.stamp_ms - after.stamp_ms) / 1000)
            told = [(f"{line.file}:{line.line}", "") for line in (before, after)]
            yield Condition("clock-set", CLOCK_SET, len(steps), said, remedy, told)


CLOCK_SET = 5.5
_STARTS = frozenset({"name_server_boot", "broker_boot", "setting", "client_created", "client_started"})


def _span(ms: float) -> str:
    return f"{ms / 3_600_000:.1f} hours" if ms >= 3_600_000 else f"{ms / 60_000:.0f} minutes"


def episodes_said(found: Reconstructed, texts: Texts, faults: Sequence[Episode]) -> list[Episode]:
    """Return the likely causes that log lines state, as episodes. An episode begins with the first line that states the
    cause, and names the fault from which the cause follows."""
    told = conditions(not_belied(texts.said, found), texts.times)
    said = [one for one in told if not CAUSES[one.name].is_seen_otherwise]
    told = shared([*said, *no_broker(found, texts)])
    return [_episode(found, texts, one, faults) for one in told if one.name != NOTHING and one.share >= LIKELY]


_EFFECTS = frozenset({"broker-address-not-reached", "broker-is-not-registered"})
"""What clients say of a broker that a fault took away."""


def _follows(found: Reconstructed, fault: Episode, said: Said) -> bool:
    """Whether the line is an effect of the fault. An effect is a client's line about the fault's broker, between the
    fault's begin and the return of routes."""
    first, source, at_ms = fault.hypotheses[0], found.source_of(said.file), _at_ms(found, said)
    client = client_named(said.file) if source is None else source.name if source.kind == CLIENT else None
    if client is None or fault.score < LIKELY or not first.timeline:
        return False
    timers, named = found.timers_used, named_in(first.timeline[:1])
    from_ms = fault.from_ms - (first.bounds_ms[0] or 0.0) - 1_000.0  # many stamps are whole seconds
    to_ms = math.inf if fault.to_ms is None else fault.to_ms + timers.R_ms + timers.S_ms + timers.P_ms
    is_of_others = "links" in first.timeline[0] and named.isdisjoint({"isolate", client})
    if is_of_others and said.cause == "broker-address-not-reached":
        return False  # clients reach a broker that is cut from others only
    in_time = at_ms is None or from_ms <= at_ms <= to_ms
    return in_time and any(_names(said, node, of) for node, of in found.nodes.brokers.items() if node in named)


def _names(said: Said, broker: str, addresses: Iterable[str]) -> bool:
    words = "|".join(map(re.escape, (broker.partition("/")[0], *addresses)))
    return re.search(rf"(?<![\w.-])(?:{words})(?![\w-])", f"{said.text} {said.detail}") is not None


def _episode(found: Reconstructed, texts: Texts, one: Condition, faults: Sequence[Episode]) -> Episode:
    lines = [said for said in texts.said if said.cause == one.name]
    times = [at for said in lines if (at := _at_ms(found, said)) is not None]
    are_all = one.name in _EFFECTS and bool(lines) and one.times < KEPT
    roots = (fault for fault in faults if all(_follows(found, fault, said) for said in lines))
    from_ms = max(0.0, min(times, default=0.0))
    places = [(where.rpartition(":"), text) for where, text in one.lines]
    first = Hypothesis(
        rank=1,
        fault=one.name.replace("-", "_"),
        sentence=f"{one.sentence.rstrip('.')} ({one.times:,} lines)" if one.times > 1 else one.sentence.rstrip("."),
        certainty=one.certainty,
        score=one.score,
        timeline=[],
        bounds_ms=[1_000.0, None],
        speaks_for=[{"says": text or one.name, "file": at[0], "line": int(at[2])} for at, text in places],
    )
    follows = next(roots, None) if are_all else None
    return Episode(from_ms=from_ms, to_ms=None, hypotheses=[first], follows=follows, stated=one.score)


def _at_ms(found: Reconstructed, said: Said) -> float | None:
    return None if said.stamp_ms is None else found.wall_ms(said.file, said.stamp_ms) - found.origin_ms
