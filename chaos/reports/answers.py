"""Describes a run's result in sentences. The first sentences say whether routes were right and clients used the routes.

    VALID broker-partition (seed 1, profile 4.9, 37 s). broker-a was cut from ns-0 for 155 s.
    Routes: ns-0 dropped broker-a 109.0 s after the cut (90 to 130 s allowed) and had it back 14.1 s …
    Clients: 4 of 4 used the living brokers in turn; 1,961 of 1,961 messages arrived.

This module judges nothing. Measured values come from verdicts and findings, the faults from the scenario.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..checks import CHECKS
from ..checks.cause import Cause, cause_of, first_wrong, guilty_nodes
from ..checks.check import Group
from ..checks.clients.name_server_selection import UNIFORM
from ..checks.finishing import INFERRED_MS
from ..faults.fault import Fault
from ..faults.kinds import ACTIONS, FAULTS
from ..faults.link_faults import Heal, LinkFault
from ..faults.process_faults import FillDisk, FreeDisk, Remove, Restart, Resume
from ..oracle.recorded import STALL
from ..oracle.windows import legend
from ..scenarios.action import ActionModel, fault_ids, is_chosen
from ..scenarios.host_actions import links_between
from ..scenarios.model import Scenario
from ..scenarios.series import nodes_of
from ..verdict import Example, Finding, Validity, Verdict, seconds, tenths, worst
from .cost import Cost
from .groups import of_each
from .imported import LIKELY, NOTHING_JUDGED, how_sure, times_of_day, with_times_of_day
from .sentences import and_more, undecided_sentences
from .text import all_of

_CLIENTS = (Group.CLIENT_ROUTES, Group.NAME_SERVERS, Group.MESSAGES, Group.CONSUMING)
_DEEDS = {
    "dead_brokers_avoided": "left dead brokers in time",
    "dead_name_servers_left": "left dead NameServers in time",
    "living_are_used": "used the living brokers in turn",
    "name_server_selection": "chose NameServers as their version does",
}
"""What all clients did if the check is VALID."""
_LEFT = {"dead_brokers_avoided": "brokers_left_within_s", "dead_name_servers_left": "name_servers_left_within_s"}
"""Promises that count only where RocketMQ allows more, by check."""
_UNUSED = {"dead_brokers_avoided": "used no dead broker", "dead_name_servers_left": "used no dead NameServer"}
_FAULTS_SHOWN = 2
_NOUNS = {
    "black_hole": "the cut",
    "name_server_list": "the change of the NameServer list",
    "half_open": "the half-open fault",
    "syn_drop": "the loss of SYNs",
    "remove": "the removal",
    "register": "the registration by hand",
    "unregister": "the unregistration by hand",
    "wipe_write_perm": "the wipe of the write permission",
    "add_write_perm": "the return of the write permission",
    "update_topic": "the change of the topic",
    "delete_topic": "the deletion of the topic",
    "update_config": "the change of settings",
}
_WHY_DROPPED = {
    "expired": " (silent for longer than brokerChannelExpiredTime)",
    "idle": " (silent until the broker's channel counted as idle)",
    "closed": " (the broker's channel had ended)",
    "exception": " (the broker's channel had broken)",
    "unregistered": " (the broker unregistered)",
}
_DROPS_SHOWN = 4
_LABEL = re.compile(r"\b([\w-]+) (start|end)\b")
_OWN_RULE = re.compile(r"(?P<method>\w[\w.]*(?:, \w[\w.]*)*): (?P<rule>.+)")
_LETTER = re.compile(r"\beach ([A-Z]r?)\b")
_NO_FAULT = "No fault was injected, so this run shows nothing about faults"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The sentences about a run that are printed before any table. A sentence that does not apply is ""."""

    verdict: Validity
    name: str
    about: str
    """The text in brackets after the name."""
    first: str
    """The first violation: who did what, and what was allowed; if the run is UNKNOWN, why."""
    injected: str
    broken: str
    """The first broken rule, and its check."""
    routes: str
    clients: str
    drops: str = ""
    """Which NameServer dropped which broker, when and why, and when it acknowledged the broker's next registration."""
    cost: str = ""
    """The run's cost for its clients."""
    undecided: tuple[str, ...] = ()
    outside: str = ""
    """Of an import in which no node broke a rule: what happened."""

    @property
    def rest(self) -> list[str]:
        """The sentences after the first line."""
        named = [("Broken rule", self.broken), ("Routes", self.routes), ("Drops", self.drops)]
        named += [("Clients", self.clients), ("Cost", self.cost)]
        return [*(f"{what}: {said}" for what, said in named if said), *self.undecided]

    def lines(self) -> list[str]:
        head = f"{self.verdict} {self.name}" + (f" ({self.about})" if self.about else "")
        told = self.outside, head, self.first.rstrip("."), self.injected.rstrip(".")
        return [". ".join(filter(None, told)) + ".", *self.rest]


def answers(
    verdicts: Sequence[Verdict], scenario: Scenario | None, name: str, about: str = "", cost: Cost | None = None
) -> Answers:
    """Return the sentences about a run: verdict and faults, broken rule, routes, clients, cost, undecided checks."""
    words = {} if scenario is None else _words(scenario)
    kinds = {} if scenario is None else {entry.name: entry.do for entry in scenario.unfolded() if entry.name}

    def said(parts: Sequence[str]) -> str:
        line = _in_words(f"{'; '.join(parts).rstrip('.')}.", words) if any(parts) else ""
        return line if scenario is None else _LABEL.sub(lambda found: _named(found, kinds), line)

    wrong, cause = first_wrong(verdicts), cause_of(verdicts)
    rule = "" if wrong is None or cause is None else _rule(wrong, cause)
    return Answers(
        verdict=worst(v.verdict for v in verdicts),
        name=name,
        about=about,
        first=said([_first(verdicts)]),
        injected="" if scenario is None else said([_injected(scenario)]),
        broken=said([rule]),
        routes=said(_routes(verdicts, scenario)),
        clients=said([*_clients(verdicts), *_above_rocketmqs(verdicts, scenario)]),
        drops=said(_drops(verdicts)),
        cost=said([_cost(cost, verdicts, scenario)]),
        undecided=tuple(said([line]) for line in _undecided(verdicts)),
    )


def _cost(cost: Cost | None, verdicts: Sequence[Verdict], scenario: Scenario | None) -> str:
    """Return the cost. A run with a planted defect does not tell what the defect alone cost."""
    told = "" if cost is None else cost.told(guilty_nodes(verdicts))
    if not told or scenario is None or not scenario.defect or not scenario.timeline:
        return told
    of = f"the faults and the planted defect {scenario.defect}"
    return f"of {of} together (the same seed without the defect shows the cost of the faults alone): {told}"


def _undecided(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Return a line for each reason why something is not decided: the checks with this reason, then the reason. That
    too few clients started is said by the check's row alone: nearly every run has too few."""
    checks: dict[str, list[str]] = defaultdict(list)
    for v in verdicts:
        for sentence in undecided_sentences(v) if [*v.undecided] != [UNIFORM] else ():
            checks[sentence].append(v.name)
    return (f"{', '.join(names)}: {sentence}" for sentence, names in checks.items())


def _rule(wrong: Verdict, cause: Cause) -> str:
    """Return the broken rule and its check. If the first violation has a rule of its own, `method: rule`, the sentence
    is of this rule, and not of all rules of the check."""
    group = CHECKS[wrong.name].group if wrong.name in CHECKS else None
    kinds = {example.more.get("kind") for example in wrong.examples[:1]}
    rows = {finding.row for finding in wrong.findings if finding.wrong and finding.kind in kinds}
    own = _OWN_RULE.fullmatch(rows.pop()) if len(rows) == 1 and group is not Group.ROUTES else None
    if own is None:
        return f"{cause.guarantee} ({wrong.name})"
    letters = legend(_LETTER.findall(own["rule"]), wrong.allowed.get("timers")).items()
    return f"{own['rule']} ({wrong.name}: {own['method']}{''.join(f'; {at}: {says}' for at, says in letters)})"


_EFFECTS = frozenset({"broker_address_not_reached", "broker_is_not_registered"})
"""Causes of an import that are what clients say of a broker that a fault took away (operations/inferring)."""


def of_incident(said: Answers, incident: Mapping[str, Any], *, is_judged: bool = True) -> Answers:
    """Return `said` for an incident imported from logs, with the inferred faults instead of injected faults. `incident`
    is incident.json. `is_judged`: whether any check examined something."""
    if not is_judged:
        said = replace(said, first=NOTHING_JUDGED, routes="", clients="")
    first = {
        number: episode["hypotheses"][0] | episode
        for number, episode in enumerate(incident["episodes"], 1)
        if episode.get("hypotheses") and "follows" not in episode
    }
    faults = {number: one for number, one in first.items() if one.get("timeline")}
    if faults:  # what clients say of a broker that they miss is no cause beside one
        first = {number: one for number, one in first.items() if one.get("fault") not in _EFFECTS}
    told = {number: one for number, one in first.items() if one.get("certainty") in ("certain", "likely")}
    sentences = [
        one["sentence"].rstrip(".")
        + times_of_day(one, incident)
        + (f" ({one['certainty']}, {one['score']:.2f})" if one["certainty"] != "certain" and "score" in one else "")
        for one in told.values()
    ]
    more = f"; and {len(sentences) - _FAULTS_SHOWN} more" if len(sentences) > _FAULTS_SHOWN else ""
    sentence = "No fault shows in these logs"
    if sentences:
        sentence = f"What happened: {'; '.join(sentences[:_FAULTS_SHOWN])}{more}"
    elif faults:
        one = max(faults.values(), key=lambda one: one["score"])
        unsure = f" is unsure; the likeliest ({one['score']:.2f})"
        how = f", {how_sure(one)}" if one["score"] >= LIKELY else unsure
        sentence = f"What happened{how}: {one['sentence'].rstrip('.')}{times_of_day(one, incident)}"
    if said.verdict is Validity.VALID:
        outside = "; what went wrong came from outside" if faults else ""
        behaved = f"As far as these logs show, no node broke a rule of RocketMQ{outside}"
        said = replace(said, first=behaved, outside="")
        if sentences or faults:  # VALID alone would read as if nothing had happened
            said, sentence = replace(said, outside=sentence), ""
    labels = {
        f"{entry['do']}-{number}": f"{_noun(entry['do'])}{f' of episode {number}' if len(told) > 1 else ''}"
        for number, one in told.items()
        for entry in one.get("timeline") or ()
    }
    edges = {f"{label} end": f"the end of {noun}" for label, noun in labels.items()}
    edges |= {f"{label} start": noun for label, noun in labels.items()}
    words = {_LABEL.sub(lambda found: _named(found, {}), edge): noun for edge, noun in edges.items()} | edges
    said_first = _in_words(said.first, words)
    headline, then = (sentence, said_first) if said.verdict is Validity.UNKNOWN else (said_first, sentence)
    return replace(
        said,
        first=headline,
        injected=then,
        routes=_in_words(said.routes, words),
        clients=_in_words(said.clients, words),
        drops=with_times_of_day(said.drops, incident),
        undecided=tuple(_in_words(line, words) for line in said.undecided),
    )


def counted(verdicts: Sequence[Verdict]) -> str:
    """Return the number of checks by verdict: `21 checks, 1 INVALID, 20 VALID.`"""
    return f"{len(verdicts)} {'check' if len(verdicts) == 1 else 'checks'}, {of_each(v.verdict for v in verdicts)}."


def _first(verdicts: Sequence[Verdict]) -> str:
    """Return who did what first, and what was allowed; if the run is UNKNOWN, why. "" if all is right."""
    wrong = first_wrong(verdicts)
    if wrong is not None and (cause := cause_of(verdicts)) is not None and wrong.examples:
        return cause.sentence.rstrip(".") + and_more(wrong)
    if wrong is not None:
        return wrong.why
    unknown = [v for v in verdicts if v.verdict is Validity.UNKNOWN]
    if not unknown:
        return ""
    more = len(unknown) - 1
    others = f"and {more} other {'check' if more == 1 else 'checks'} are" if more else "is"
    return f"{unknown[0].name} {others} not decided: {unknown[0].why}".rstrip(".: ")


# -- what was injected


def _injected(scenario: Scenario) -> str:
    """Return `broker-a was cut from ns-0 for 155 s`, with the first few faults and the number of others."""
    entries = scenario.unfolded()
    ends_s = _ends_s(scenario, entries)
    done = [(entry, end_s) for entry, end_s in zip(entries, ends_s, strict=True) if not _ends_a_fault(entry, ends_s)]
    told = Counter(_fault(scenario, *one) for one in done)
    if not told:
        return "" if scenario.cluster.external else _NO_FAULT  # into a cluster of `up`, a person injects faults
    shown = [f"{one}, {count} times" if count > 1 else one for one, count in [*told.items()][:_FAULTS_SHOWN]]
    more = sum([*told.values()][_FAULTS_SHOWN:])
    said = "; ".join(shown) + (f"; and {more} more" if more else "")
    return ". ".join([said, *changes_nothing(scenario)])


def changes_nothing(scenario: Scenario) -> list[str]:
    """Return a sentence for each link fault without effect: an equal fault covers the same links as long, or the fault
    ends at the moment at which it begins."""
    entries = scenario.unfolded()
    ids = fault_ids(entries)
    lasting: list[tuple[ActionModel, str, float]] = []
    found = []
    for at, (entry, end_s) in enumerate(zip(entries, _ends_s(scenario, entries), strict=True)):
        if not isinstance(entry.what, LinkFault):
            continue
        lasting = [one for one in lasting if one[2] > entry.at_s]
        until_s = math.inf if end_s is None else end_s
        same = (
            id_
            for earlier, id_, last_s in lasting
            if earlier.what == entry.what and {*entry.links} <= {*earlier.links} and last_s >= until_s
        )
        if end_s == entry.at_s:
            found.append(f"{ids[at]} changes nothing: it ends at {entry.at_s:g} s, when it begins")
        elif (first := next(same, None)) and not entry.period_s:
            found.append(f"{ids[at]} changes nothing: {first} is on {all_of(entry.links)} as long")
        if not entry.period_s:
            lasting.append((entry, str(ids[at]), until_s))
    return found


def _ends_a_fault(entry: ActionModel, ends_s: Sequence[float | None]) -> bool:
    """Whether the entry ends an earlier one. A restart of a process that runs is a fault of its own."""
    what = entry.what
    return isinstance(what, Heal | Resume | FreeDisk) or (isinstance(what, Restart) and entry.at_s in ends_s)


def _fault(scenario: Scenario, entry: ActionModel, end_s: float | None) -> str:
    what = entry.what
    if isinstance(what, Restart):
        return " ".join(filter(None, (all_of(entry.nodes), _was(scenario, entry.nodes), "restarted", what.about)))
    if isinstance(what, FillDisk):
        lasted = "" if end_s is None else f" for {end_s - entry.at_s:g} s"
        return f"the disk of {all_of(entry.nodes)} was full{lasted}"
    if not isinstance(what, Fault):
        return f"{_noun(what.do)} ({entry.summary.removeprefix(what.do).strip()})"
    lasted = "" if end_s is None else f" for {round(end_s - entry.at_s, 1):g} s"
    lasted += f", on and off every {entry.period_s:g} s" if entry.period_s else ""
    if isinstance(what, Remove):  # also what a restart at another address is for RocketMQ
        joins = ((at_s, name) for name, at_s in scenario.joins_s().items() if name.startswith("ns-"))
        later = sorted(one for one in joins if one[0] >= entry.at_s)
        lasted = f", and {later[0][1]} joined at {later[0][0]:g} s" if later else ""
    if not isinstance(what, LinkFault):
        return f"{all_of(entry.nodes)} {_was(scenario, entry.nodes)} {what.title}{lasted}"
    for host in (host for one in scenario.timeline for host in one.hosts):
        if entry.links == links_between(scenario.hosts()[host], scenario.topology()):
            return f"host {host} was cut from all other hosts{lasted}"
    one_way = f", {what.stream} only" if what.stream != "both" else ""
    if what.do in ("cut", "black_hole") and all(map(is_chosen, entry.links)):
        return f"clients were cut{lasted} from the NameServers that they had chosen{one_way}"
    ends = [re.split(r"\s*<?->\s*", link.replace("isolate ", "* <-> ")) for link in entry.links]
    if what.do in ("cut", "black_hole") and all(len(pair) == 2 and pair[0] == ends[0][0] for pair in ends):
        who, others = [ends[0][0]], ["all others" if pair[1] == "*" else pair[1] for pair in ends]
        if who == ["*"]:
            who, others = others, ["all others"]
        return f"{all_of(who)} {_was(scenario, who)} cut from {all_of(others)}{one_way}{lasted}"
    return f"{all_of(entry.links)} had a fault ({what.title}{one_way}){lasted}"


def _was(scenario: Scenario, names: Sequence[str]) -> str:
    return "was" if len(names) == 1 and len(scenario.topology().members(names[0])) <= 1 else "were"


def _ends_s(scenario: Scenario, entries: Sequence[ActionModel]) -> list[float | None]:
    """Return for each entry of the timeline when later entries end the fault of the entry; None if no entry ends the
    whole fault."""
    topology = scenario.topology()
    ids = fault_ids(entries)
    found: list[float | None] = [None] * len(entries)
    open_: dict[int, set[Hashable]] = {}
    for at, entry in enumerate(entries):
        what = entry.what
        on: set[Hashable] = {*nodes_of(entry.nodes, topology.members)}
        if isinstance(what, Heal | LinkFault):
            on = {*entry.links} if any(map(is_chosen, entry.links)) else {*topology.parse_links(*entry.links)}
        if isinstance(what, Heal):
            ended = {one for one in open_ if ids[one] is not None and (not what.faults or ids[one] in what.faults)}
        elif isinstance(what, Restart | Resume | FreeDisk):
            ended = {one for one in open_ if ids[one] is None}
        elif isinstance(what, Fault | FillDisk):
            open_[at] = on
            continue
        else:
            continue
        for one in ended:
            open_[one] -= on or open_[one]
            if not open_[one]:
                found[one] = entry.at_s
                del open_[one]
    return found


def _words(scenario: Scenario) -> Mapping[str, str]:
    """Return the words for the labels of a single fault's start and end; nothing for several faults."""
    unfolded = scenario.unfolded()
    ends_s = _ends_s(scenario, unfolded)
    entries = [entry for entry in unfolded if not _ends_a_fault(entry, ends_s)]
    if len(entries) != 1 or not isinstance(entries[0].what, Fault):
        return {}
    (entry,) = entries
    if entry.nodes and len(nodes_of(entry.nodes, scenario.topology().members)) != 1:
        return {}
    noun = _noun(entry.do)
    end = "the restart" if entry.do in ("kill", "stop") else f"the end of {noun}"
    label = entry.name or f"{entry.do}-1"
    return {f"{label} start": noun, f"{label} end": end}


def _noun(do: str) -> str:
    return _NOUNS.get(do, f"the {do.replace('_', ' ')}")


def _named(found: re.Match[str], kinds: Mapping[str, str]) -> str:
    """Return `the end of the cut named black_hole-2` for `black_hole-2 end`: if there are several faults, the label
    tells them apart. `kinds`: the scenario's own labels, each with its action (`do`)."""
    label, edge = found.groups()
    do = kinds.get(label, label.rpartition("-")[0])
    if do == "absent":
        return "a NameServer's join"
    if do not in ACTIONS:
        return found[0]
    if edge == "end" and do in ("kill", "stop"):
        return f"the restart that ended {label}"
    end = "the end of " if edge == "end" and do in FAULTS else ""
    return f"{end}{_noun(do)} named {label}"


def _in_words(line: str, words: Mapping[str, str]) -> str:
    for label, word in words.items():
        line = line.replace(label, word)
    return line


# -- the two answers


def _wrong_of(verdicts: Sequence[Verdict], groups: Sequence[Group], *, who: bool = False) -> list[str]:
    """`INVALID: dead_brokers_avoided (producer-1)`, `UNKNOWN: order_kept` for the checks of these groups. `who`: with
    the guilty nodes."""
    said = []
    for validity in (Validity.INVALID, Validity.UNKNOWN):
        of = [v for v in verdicts if v.verdict is validity and _is_of(v, groups)]
        said += [f"{validity}: {', '.join(v.name + (_guilty(v) if who else '') for v in of)}"] if of else []
    return said


def _guilty(v: Verdict) -> str:
    guilty = sorted({CHECKS[v.name].accused(of.example) for of in v.findings if of.wrong} - {""})
    return f" ({', '.join(guilty[:3])}{' and others' if len(guilty) > 3 else ''})" if guilty else ""


def _is_of(v: Verdict, groups: Sequence[Group]) -> bool:
    return v.name in CHECKS and CHECKS[v.name].group in groups


def _routes(verdicts: Sequence[Verdict], scenario: Scenario | None) -> list[str]:
    said = _wrong_of(verdicts, (Group.ROUTES,))
    of = {v.name: v for v in verdicts}
    if truth := of.get("routes_are_true"):
        said += _drops_and_returns(truth, all_right=not said)
    converge = of.get("routes_converge")
    name_servers = 0 if scenario is None else scenario.cluster.name_servers
    decided = converge is not None and converge.verdict is Validity.VALID and not converge.undecided
    if decided and name_servers > 1:
        said.append(f"{'both' if name_servers == 2 else f'all {name_servers}'} NameServers agree")
    return said


def spoken_of(verdicts: Sequence[Verdict]) -> list[tuple[str, Example]]:
    """Return each example of a check that is not VALID, and the latest drop and return of a broker, each with its
    check."""
    told = [
        first_wrong(verdicts),
        *(v for kind in (Validity.INVALID, Validity.UNKNOWN) for v in verdicts if v.verdict is kind),
    ]
    found = [(v.name, e) for v in told if v is not None for e in v.examples]
    truth = [v for v in verdicts if v.name == "routes_are_true"]
    changes = [c for v in truth for kind in ("must not hold", "must hold") for c in _changes(v, kind)[:1]]
    return [*found, *((truth[0].name, change.example) for change in changes)]


def _drops_and_returns(truth: Verdict, *, all_right: bool) -> list[str]:
    drops, returns = _changes(truth, "must not hold"), _changes(truth, "must hold")
    if not drops and not returns:
        right = f"every table was right all the time{_gone_at_once(truth)}"
        return [right] if truth.verdict is Validity.VALID and all_right else []
    latest, shown = _latest(drops, "drop", truth), drops[:1]
    if soon := [early for drop in drops for early in _too_soon(drop, truth)]:
        latest = f"{len(drops)} drops, {len(soon)} too soon: " if len(drops) > 1 else ""
        shown = [max(soon, key=lambda drop: drop.over_ms)]
    said = [f"{latest}{drop.subject} dropped {drop.object} {_in_time(drop)}" for drop in shown]
    if not returns:
        return said
    back = returns[0]
    if len(drops) == len(returns) == 1 and (drops[0].subject, drops[0].object) == (back.subject, back.object):
        return [f"{said[0]} and had it back {_in_time(back)}"]
    return [*said, f"{_latest(returns, 'return', truth)}{back.subject} had {back.object} back {_in_time(back)}"]


def _drops(verdicts: Sequence[Verdict]) -> list[str]:
    """Return `ns-0 dropped broker-a at 80.0 s (the broker's channel had ended) and acknowledged its next registration
    17.2 s later, at 97.2 s` for each moment."""
    found: dict[tuple[str, str, str], tuple[list[str], list[float]]] = {}
    for v in verdicts:
        for one in v.measured.get("dropped", ()) if v.name == "no_false_eviction" else ():
            key = tenths(one["at_ms"] - v.timeline_ms), one["broker"], one["reason"]
            name_servers, back_ms = found.setdefault(key, ([], []))
            name_servers.append(one["name_server"])
            back_ms += [] if one["back_ms"] is None else [one["back_ms"] - v.timeline_ms]
    said = [
        f"{all_of(sorted({*name_servers}))} dropped {broker}{_times(name_servers)} at {at_s} s"
        + _WHY_DROPPED.get(reason, "")
        + _back(float(at_s) * 1000, back_ms, all_back=len(back_ms) == len(name_servers))
        for (at_s, broker, reason), (name_servers, back_ms) in found.items()
    ]
    more = [f"and {len(said) - _DROPS_SHOWN} more"] if len(said) > _DROPS_SHOWN else []
    return [*said[:_DROPS_SHOWN], *more]


def _times(name_servers: Sequence[str]) -> str:
    return f" {len(name_servers)} times" if len(name_servers) > len({*name_servers}) else ""


def _back(dropped_ms: float, back_ms: Sequence[float], *, all_back: bool) -> str:
    if not all_back:
        return ""
    first, last = tenths(min(back_ms)), tenths(max(back_ms))
    if first != last:
        return f" and acknowledged its next registration at {first} to {last} s"
    return f" and acknowledged its next registration {seconds(back_ms[0] - dropped_ms)} later, at {first} s"


def _gone_at_once(truth: Verdict) -> str:
    """Return the brokers that a fault removed from all tables within one log stamp; "" if there are none."""
    held = {(f.subject, f.object, f.to_ms) for f in truth.findings if f.kind == "must hold"}
    servers: dict[tuple[str, str], dict[str, None]] = {}
    for f in truth.findings:
        gone = f.kind == "must not hold" and f.after.endswith(" start") and (f.subject, f.object, f.from_ms) in held
        if gone:
            servers.setdefault((f.object, f.after), {})[f.subject] = None
    said = [f"{all_of(of)} had {broker} no more from {after} on" for (broker, after), of in servers.items()]
    more = f"; and {len(said) - 1} more drops at once" if len(said) > 1 else ""
    return f": {said[0]}{more}" if said else ""


def _changes(truth: Verdict, kind: str) -> list[Finding]:
    """Return the changes after injected faults that came within their limits, the longest time first."""
    found = [f for f in truth.findings if f.kind == kind and f.measured_ms is not None and not (f.wrong or f.late)]
    found = [f for f in found if f.after not in ("", "begin") and not f.after.startswith(STALL)]
    of = {(f.after, f.subject, f.object): f for f in sorted(found, key=_shortest)}
    return sorted(of.values(), key=lambda f: (-_shortest(f), f.subject, f.object))


def _too_soon(drop: Finding, truth: Verdict) -> list[Finding]:
    """Return the finding that a NameServer had to keep the broker for longer; [] if the drop came not too soon."""
    same = (f for f in truth.findings if (f.after, f.subject, f.object) == (drop.after, drop.subject, drop.object))
    return [f for f in same if f.kind == "must hold" and f.wrong and f.too_early][:1]


def _shortest(change: Finding) -> float:
    return round(change.measured_ms or 0.0, -2)


def _latest(changes: Sequence[Finding], noun: str, truth: Verdict) -> str:
    """Return `3 drops, the slowest: `, or `2 drops in time and 1 late, the slowest drop in time: ` if 1 was late."""
    kind, nouns = changes[0].kind if changes else "", noun if len(changes) == 1 else f"{noun}s"
    wrong = (f for f in truth.findings if f.kind == kind and f.wrong and f.measured_ms is not None)
    if late := len({(f.after, f.subject, f.object) for f in wrong}):
        return f"{len(changes)} {nouns} in time and {late} late, the slowest {noun} in time: "
    return f"{len(changes)} {nouns}, the slowest: " if len(changes) > 1 else ""


def _in_time(change: Finding) -> str:
    """Return `109.0 s after black_hole-1 start (90 to 130 s allowed)`, without the allowed times if the fault was
    inferred."""
    if (inexact_ms := change.more.get(INFERRED_MS)) is not None:
        took = f"{(change.measured_ms or 0.0) / 1000:.1f} ± {inexact_ms / 1000:.1f} s"
        return f"{took} after {change.after}, whose time is inferred"
    ends = [f"{at_ms / 1000:.4g}" for at_ms in (change.earliest_ms, change.bound_ms) if at_ms and at_ms >= 50.0]
    soon = f": {seconds(change.over_ms)} too soon" if change.wrong else ""
    allowed = f" ({' to '.join(ends)} s allowed{soon})" if ends else ""
    return f"{seconds(change.measured_ms or 0.0)} after {change.after}{allowed}"


def _clients(verdicts: Sequence[Verdict]) -> list[str]:
    said = _wrong_of(verdicts, _CLIENTS, who=True)
    right = {v.name: v for v in verdicts if v.verdict is Validity.VALID}
    deeds = [_deed(name, right[name]) + _when(right[name]) for name in _DEEDS if name in right]
    clients = max((_count(right[name]) for name in _DEEDS if name in right), default=0)
    if deeds and clients:
        said.append(f"{clients} of {clients} {all_of(deeds)}")
    counts = next((v.measured for v in verdicts if v.name == "no_acknowledged_loss"), {})
    if acknowledged := counts.get("acknowledged"):
        said.append(f"{counts['received']:,} of {acknowledged:,} messages arrived{_not_arrived(counts)}")
    return said


def _above_rocketmqs(verdicts: Sequence[Verdict], scenario: Scenario | None) -> Iterator[str]:
    """Return a sentence for each promise that no client is judged by, because RocketMQ allows less."""
    for v in verdicts:
        promised_s = getattr(scenario and scenario.promises, _LEFT.get(v.name, ""), None)
        allowed_s = max((f.bound_ms / 1000 for f in v.findings if f.bound_ms), default=math.inf)
        if promised_s is not None and promised_s > allowed_s:
            limits = f"your {promised_s:g} s ({_LEFT[v.name]}) is above RocketMQ's {allowed_s:.4g} s"
            yield f"{limits}, so RocketMQ's limit decides"


def _deed(name: str, right: Verdict) -> str:
    """Return what the clients did. Where no fault lasted long enough to ask when clients leave a broker, they used none
    that their routes lacked; who never used a dead node did not leave one either."""
    measured = right.measured
    if not measured.get("promised", 1):
        return "used no broker that their routes lacked"
    unused = [] in (measured.get("last_use"), measured.get("left")) and not measured.get("may_stay")
    return _UNUSED[name] if unused else _DEEDS[name]


def _count(v: Verdict) -> int:
    return sum(group.count for group in v.clients if group.kind != "prober")


def _when(right: Verdict) -> str:
    """` (producer-0 the last, 16.0 s after broker-a was lost; 30 s allowed, consumers 50 s)`; "" if nobody used the
    lost node."""
    if stay := right.measured.get("may_stay"):
        return f" ({all_of(stay)} need not: clientCloseSocketIfTimeout=false)"
    left = right.measured.get("last_use") or right.measured.get("left") or ()
    last = next(iter(left), None)
    if last is None:
        return ""
    moved = len({one["client"] for one in left})
    who = f"only {last['client']} had to" if moved == 1 else f"{last['client']} the last"
    lost = last.get("broker_name") or last["name_server"]
    of_kind = {one["client"].partition("-")[0]: one.get("bound_ms") for one in reversed(left)}
    others = (f", {kind}s {ms / 1000:.4g} s" for kind, ms in of_kind.items() if ms and ms != last.get("bound_ms"))
    allowed_s = f"; {last['bound_ms'] / 1000:.4g} s allowed{''.join(others)}" if last.get("bound_ms") else ""
    return f" ({who}, {seconds(last['after_ms'])} after {lost} was lost{allowed_s})"


def _not_arrived(counts: Mapping[str, int]) -> str:
    words = {"only_in_final_reads": "still in a broker when the run ended", "lost": "lost", "unread": "not looked for"}
    return "".join(f", {counts[name]:,} {word}" for name, word in words.items() if counts.get(name))
