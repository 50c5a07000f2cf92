"""The tables of docs/clients.md: clients × rules, each cell what was measured, and on how many; from measured/."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from nemesrv.chaos.verdict import Validity
from nemesrv.conformance.rules import RULES, Rule

from .catalogue import CLIENTS, Client

BY_CHANCE = ("storm", "send_stall_s")
"""Rules whose interval says which other values chance, or the machine's load, gives the same client."""

MEASURED = Path(__file__).with_name("measured")
LEFT_OUT = "–"
_RUN = 3
"""So many clients, one after the other in the catalogue, are named by the first and the last."""


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


def cell(*rules: Mapping[str, Any]) -> str:
    """`3.0 s (8)`, `random: 20/16/24 (60)`; bold where a profile has something else; of several clients their range."""
    first, count = rules[0], f"({sum(rule['count'] for rule in rules):,})"
    if first["measured"] is None:
        return f"? {count}"
    text = first["measured"]
    if not isinstance(text, str):
        text = f"{_range(rule['measured'] for rule in rules)} {first['unit']}"
    if choices := [rule["first choices"] for rule in rules if "first choices" in rule]:
        text = f"{text}: {'/'.join(str(sum(each)) for each in zip(*choices, strict=True))}"
    ends = [end for rule in rules for end in rule["interval"] or ()]
    if ends and first["rule"] in BY_CHANCE:
        text = f"{text} ({_range(ends)})"
    said = f"{text} {count}"
    return f"**{said}**" if first["verdict"] == Validity.INVALID else said


def _range(values: Iterable[float]) -> str:
    found = sorted(values)
    return " to ".join(dict.fromkeys(f"{end:.3g}" for end in (found[0], found[-1])))


def _names(names: Collection[str]) -> str:
    """The clients in the catalogue's order; of three or more that follow each other there, the first and the last."""
    parts: list[str] = []
    for language, group in groupby(CLIENTS, lambda name: name.partition("-")[0] if name in names else ""):
        run = list(group) if language else []
        parts += run if len(run) < _RUN else [f"{run[0]} to {run[-1]}"]
    return ", ".join(parts)


def _rooms() -> dict[str, list[Rule]]:
    """What rules are about, as the folder of rules has it, to its rules."""
    rooms: dict[str, list[Rule]] = {}
    for rule in RULES.values():
        rooms.setdefault(rule.measure.__module__.rpartition(".")[2], []).append(rule)
    return rooms


def _table(rules: Sequence[Rule], found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A row for all clients that are alike, a column for each rule."""
    yield f"| client | {' | '.join(f'`{rule.name}`' for rule in rules)} |"
    yield "|---|" + "---|" * len(rules)
    rows: dict[tuple[str, ...], list[str]] = {}
    for name, of in found.items():
        kinds = dict.fromkeys(of["left_out"], LEFT_OUT)
        kinds |= {rule["rule"]: _kind(rule, of["profile"]) for rule in of["rules"]}
        language = of["profile"].partition("-")[0]
        rows.setdefault((language, *(kinds.get(rule.name, "") for rule in rules)), []).append(name)
    for (_, *kinds_of_row), names in rows.items():
        measured_of = [{rule["rule"]: rule for rule in found[name]["rules"]} for name in names]
        cells = (
            kind if kind in (LEFT_OUT, "") else cell(*(of[rule.name] for of in measured_of))
            for rule, kind in zip(rules, kinds_of_row, strict=True)
        )
        yield f"| {_names(names)} | {' | '.join(cells)} |"


def _kind(rule: Mapping[str, Any], profile: str) -> str:
    """What is equal in all clients of a row: the word; of a number what the profile expects, or the profile."""
    value, expected = rule["measured"], rule["expected"]
    equal = value if value is None or isinstance(value, str) else profile if expected is None else expected
    return f"{equal}{' is wrong' * (rule['verdict'] == Validity.INVALID)}"


def _source(client: Client, found: Mapping[str, Any] | None) -> str:
    package = f"{client.registry}: `{client.package}` {client.version}".rstrip()
    if found is None:
        return f"| {client.name} | {package} | `{client.profile}` | not measured yet | | | |"
    if clients := found.get("clients"):
        package += f"; {len(clients)} clients in it: {', '.join(f'`{each}`' for each in clients)}"
    measured = f"{found['starts']} | {client.servers} | {found['late_ms'] / 1000:.1f} s | {found['verdict']}"
    return f"| {client.name} | {package} | `{found['profile']}` | {measured} |"


def _two_runs(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Rules whose two results differ, or of which one is missing, and why they may differ."""
    for name, of in found.items():
        agreement = of.get("agreement") or {}
        reasons: dict[str, list[str]] = {}
        for each in (*agreement.get("not the same", ()), *agreement.get("not decided", ())):
            rule, values, why = (*each.split(": ", 2), "")[:3]
            why = "" if why == "they are not the same" else why.removesuffix(": ")
            reasons.setdefault(why, []).append(f"`{rule}`: {values}")
        yield from (f"| {name} | {'; '.join(rules)} | {why} |" for why, rules in reasons.items())
    said: dict[str, list[str]] = {}
    for name in found:
        said.setdefault(CLIENTS[name].of_two_runs, []).append(name)
    yield from (f"| {_names(names)} | | {why} |" for why, names in said.items() if why)


def _notes(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What happened in a client's run: programs that ended or hung; not which situations were repeated."""
    for name, of in found.items():
        yield from (f"| {name} | {note} |" for note in dict.fromkeys(of["notes"]) if not note.startswith("repeated, "))


def _listed(found: Mapping[str, Mapping[str, Any]], verdict: Validity) -> Iterator[str]:
    """A row for each rule with this verdict and what was found, with all clients of which that is so."""
    clients: dict[str, list[str]] = {}
    for name, of in found.items():
        for rule in of["rules"]:
            if rule["verdict"] != verdict:
                continue
            expected = "" if rule["expected"] is None else _plain(rule["expected"])
            row = f"`{rule['rule']}` | {cell(rule).strip('*')} | {expected} | {rule['why']} |"
            clients.setdefault(row, []).append(name)
    yield from (f"| {_names(names)} | {row}" for row, names in clients.items())


def _left_out(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Each reason with its rules, and the clients for which these were left out."""
    reasons: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for name, of in found.items():
        for why in dict.fromkeys(of["left_out"].values()):
            rules = tuple(rule for rule, reason in of["left_out"].items() if reason == why)
            reasons.setdefault(why, {}).setdefault(rules, []).append(name)
    for why, of_rules in reasons.items():
        for rules, clients in of_rules.items():
            yield f"| {', '.join(f'`{rule}`' for rule in rules)} | {why} | {_names(clients)} |"


def _section(title: str, head: str, rows: Sequence[str], nothing: str) -> list[str]:
    """A heading and a table with these columns; `nothing` without a row."""
    table = [f"| {head} |", "|---" * (head.count("|") + 1) + "|", *rows]
    return ["", f"## {title}", "", *(table if rows else [nothing])]


def _plain(expected: object) -> str:
    if isinstance(expected, list):
        return " or ".join(map(_plain, expected))
    if isinstance(expected, dict):
        return " and ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in expected.items())
    return f"{expected:g}" if isinstance(expected, float) else str(expected)


def sources(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of clients: where each comes from, and how it was measured."""
    columns = "client | package | profile | starts | servers | machine late | verdict"
    rows = (_source(client, found.get(name)) for name, client in CLIENTS.items())
    return "\n".join([f"| {columns} |", "|---|---|---|---:|---|---:|---|", *rows])


def results(found: Mapping[str, Mapping[str, Any]]) -> str:
    """What was measured: a section for each room of rules, then the deviations and what was left out."""
    lines: list[str] = []
    for room, rules in _rooms().items():
        lines += ["", f"## {room.capitalize()}", "", *_table(rules, found)]
    for title, verdict in (("Deviations", Validity.INVALID), ("Not decided", Validity.UNKNOWN)):
        lines += _section(title, "client | rule | measured | profile | why", [*_listed(found, verdict)], "None.")
    lines += _section("Two runs", "client | rules: first run and second run | why", [*_two_runs(found)], "All agree.")
    lines += _section("During the runs", "client | what happened", [*_notes(found)], "Nothing.")
    lines += _section("Left out", "rules | why | clients", [*_left_out(found)], "Nothing.")
    return "\n".join(lines[1:])
