"""docs/clients.md: clients × rules, each cell what was measured and on how many; from measured/, one file a client."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, Rule

from ..interop.test_subcommands import subcommands
from .catalogue import CLIENTS, Client
from .upstream import concerns

MEASURED = Path(__file__).with_name("measured")
LEFT_OUT = "–"

HEAD = """# RocketMQ's clients, measured

Written by `make clients` ([tests/clients_matrix](../tests/clients_matrix)): each client as its registry has it, in a
driver of one file that starts, sends each 200 ms and receives. [`nemesrv conform`](conform.md) measures it from outside
and compares it with the profile that its source code gives ([client profiles](client-profiles.md)).

A cell has the measured value, and the number of measurements. **Bold**: differs from the profile. `?`: not decided.
`–`: left out. The reasons are below. [conform.md](conform.md) says what each rule measures. Each run is compared with
the run before it of the same client: words must be equal, times within the rule's tolerance, counts within chance
([twice.py](../tests/clients_matrix/twice.py)). [Two runs](#two-runs) lists the differences.
"""

BY_AGE = (
    ("sends go to the broker's VIP port", "3.5.8", "the broker's port", "two below it"),
    ("", "4.5.1", "two below it", "the broker's port"),
    ("`timeouts_add`", "4.3.0", "connect and answer have a time each", "one deadline for the call"),
    ("`list_change_s`", "4.7.1", "the chosen one is kept, though the new list lacks it", "it is left"),
    (
        *("`closes_on_silence`, `leaves_on_silence`", "4.9.1"),
        *(
            "a NameServer that does not answer is kept, and its connection",
            "the connection is closed, the next one asked",
        ),
    ),
    ("a scan of the NameServers, each 3 s", "5.0.0", "none", "those that accept are told from the others"),
    ("`useHeartbeatV2`", "5.1.3", "none", "where it is set"),
    ("`startDetectorEnable`", "5.1.4", "none", "where it is set"),
    ("`failover`", "5.1.4", "never, from 4.9.1 on (apache/rocketmq#7056)", "recovers, as up to 4.9.0"),
    ("a server's GO_AWAY", "5.2.0", "an error", "the channel is made anew"),
    ("`tries_refused`", "5.3.0", "the whole list in one call", "one in a call"),
)
"""What, from which version on, what until then, and what since."""
OF_AGES = """Read in the source of each release from 4.0.0 on, and in the class files of 3.2.6 and 3.6.2; what
`make clients` measures of one, its column says. In all of them the list is shuffled once when it is set, a connect's
time is 3 s, and one caller at a time chooses, for 3 s at most."""
OF_GO = """Go 1.2 is C++ 1.x behind cgo (`core` includes `rocketmq/CProducer.h`, links librocketmq), which comes
in PyPI's rocketmq without its headers; so the column of cpp-1.x is Go 1.2's. Go 2.0.0 names a `modern-go/reflect2` of
2018, with which its first look-up ends in a nil pointer on Go 1.24 and later; its driver is built with v1.0.2."""
OF_MQADMIN = """Against a cluster of ours; `tests/interop/test_subcommands.py` asks for each, and fails where mqadmin
lists one that is not counted here. [Why not](compatibility.md#mqadmin)."""
FOR_UPSTREAM = """Behaviour that costs a client's users something; in brackets the figures of the tables above. The
other figures were counted while the drivers were developed, at Apache's servers and at ours where both are named."""


def measured(folder: Path = MEASURED) -> dict[str, dict[str, Any]]:
    """Client to what is kept of its conform.json, of the clients that were measured."""
    files = {name: folder / f"{name}.json" for name in CLIENTS}
    return {name: json.loads(file.read_text("utf-8")) for name, file in files.items() if file.exists()}


def keep(found: Mapping[str, Any], date: str, agreement: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What is kept of a conform.json: without examples, but for the first choices. `agreement`: with the run before."""
    rules = []
    for rule in found["rules"]:
        kept = {
            key: rule[key] for key in ("rule", "measured", "count", "expected", "verdict", "unit", "interval", "why")
        }
        choices = [each["first choices"] for each in rule["examples"] if "first choices" in each]
        rules.append({**kept, "first choices": choices[0]} if choices else kept)
    same = ("profile", "verdict", "left_out", "name_servers", "brokers", "starts", "late_ms")
    notes = [note.partition("; its last output")[0].partition("; it wrote nothing")[0] for note in found["notes"]]
    told = {"date": date, "nemesrv": found["versions"]["nemesrv"], **{key: found[key] for key in same}}
    told |= {"clients": next((list(rule["clients"]) for rule in found["rules"] if "clients" in rule), [])}
    return {**told, "rules": rules, "notes": notes, "agreement": agreement}


def cell(rule: Mapping[str, Any] | None) -> str:
    """`3.0 s (8)`, `random: 20/16/24 (60)`; bold where a profile has something else."""
    if rule is None:
        return LEFT_OUT
    value, count = rule["measured"], f"({rule['count']:,})"
    if value is None:
        return f"? {count}"
    text = value if isinstance(value, str) else f"{value:.3g} {rule['unit']}"
    if choices := rule.get("first choices"):
        text = f"{text}: {'/'.join(map(str, choices))}"
    said = f"{text} {count}"
    return f"**{said}**" if rule["verdict"] == Validity.INVALID else said


def _rooms() -> dict[str, list[Rule]]:
    """What rules are about, as the folder of rules has it, to its rules."""
    rooms: dict[str, list[Rule]] = {}
    for rule in RULES.values():
        rooms.setdefault(rule.measure.__module__.rpartition(".")[2], []).append(rule)
    return rooms


def _by_rule(found: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {rule["rule"]: rule for rule in found["rules"]}


def _table(rules: Sequence[Rule], found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    cells = {name: _by_rule(of) for name, of in found.items()}
    yield f"| rule | {' | '.join(found)} |"
    yield "|---|" + "---|" * len(found)
    for rule in rules:
        yield f"| `{rule.name}` | {' | '.join(cell(cells[name].get(rule.name)) for name in found)} |"


def _source(client: Client, found: Mapping[str, Any] | None) -> str:
    package = f"{client.registry}: `{client.package}` {client.version}".rstrip()
    if found is None:
        return f"| {client.name} | {package} | `{client.profile}` | not measured yet | | |"
    when = f"{found['starts']} starts, {found['name_servers']} NameServers {client.servers}"
    when += f", machine {found['late_ms'] / 1000:.1f} s late at most"
    if clients := found.get("clients"):
        when += f"; {len(clients)} clients in it: {', '.join(f'`{each}`' for each in clients)}"
    return f"| {client.name} | {package} | `{found['profile']}` | {when} | {found['verdict']} | {_agrees(found)} |"


def _agrees(found: Mapping[str, Any]) -> str:
    agreement = found.get("agreement")
    if agreement is None:
        return "no other run"
    return f"{agreement['agree']} of {agreement['rules']} rules"


def _two_runs(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What two runs of a client found that is not the same, or that one of them left open."""
    for name, of in found.items():
        agreement = of.get("agreement") or {}
        for title in ("not the same", "not decided"):
            yield from (f"* {name}, {title}: {_coded(said)}" for said in agreement.get(title, ()))
        if said := CLIENTS[name].of_two_runs:
            yield f"* {name}: {said}"


def _coded(said: str) -> str:
    rule, colon, rest = said.partition(":")
    return f"`{rule}`{colon}{rest}"


def _listed(found: Mapping[str, Mapping[str, Any]], verdict: Validity) -> Iterator[str]:
    for name, of in found.items():
        for rule in of["rules"]:
            if rule["verdict"] != verdict:
                continue
            expected = "" if rule["expected"] is None else f"; the profile has {_plain(rule['expected'])}"
            why = f": {rule['why']}" if rule["why"] else ""
            yield f"* {name}, `{rule['rule']}` {cell(rule).strip('*')}{expected}{why}"


def _left_out(found: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Each reason with its rules."""
    reasons = dict.fromkeys(found["left_out"].values())
    for why in reasons:
        yield why, [f"`{rule}`" for rule, reason in found["left_out"].items() if reason == why]


def _plain(expected: object) -> str:
    if isinstance(expected, list):
        return " or ".join(map(_plain, expected))
    if isinstance(expected, dict):
        return " and ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in expected.items())
    return f"{expected:g}" if isinstance(expected, float) else str(expected)


def render(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The page."""
    lines = [HEAD, "| client | package | profile | measured | verdict | the run before |", "|---|---|---|---|---|---|"]
    lines += [_source(client, found.get(name)) for name, client in CLIENTS.items()]
    for room, rules in _rooms().items():
        if found:
            lines += ["", f"## {room.capitalize()}", "", *_table(rules, found)]
    for title, verdict in (("Deviations", Validity.INVALID), ("Not decided", Validity.UNKNOWN)):
        listed = list(_listed(found, verdict))
        lines += ["", f"## {title}", "", *(listed or ["None."])]
    lines += ["", "## Two runs", "", *(list(_two_runs(found)) or ["All agree."])]
    notes = [f"* {name}: {note}." for name, of in found.items() for note in dict.fromkeys(of["notes"])]
    lines += ["", "## Besides", "", *(notes or ["Nothing."])]
    left_out = [f"* {name}: {why} ({', '.join(rules)})" for name, of in found.items() for why, rules in _left_out(of)]
    lines += ["", "## Left out", "", *(left_out or ["Nothing."])]
    lines += [
        "",
        "## Java clients, by age",
        "",
        OF_AGES,
        "",
        "| what | from | until then | since |",
        "|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(row)} |" for row in BY_AGE]
    lines += ["", "## Go clients", "", OF_GO]
    lines += ["", "## mqadmin's subcommands", "", OF_MQADMIN, ""]
    lines += ["| mqadmin | subcommands | work | are refused in words | not tried |", "|---|---:|---:|---:|---:|"]
    for version, profile in (("4.9.8", "4.9"), ("5.3.3", "5.x")):
        counts = [len(names) for names in subcommands(profile)]
        lines.append(f"| {version} | {sum(counts)} | {' | '.join(map(str, counts))} |")
    lines += ["", "## For upstream", "", FOR_UPSTREAM, "", *(f"* {each}" for each in concerns(found))]
    return "\n".join(lines) + "\n"
