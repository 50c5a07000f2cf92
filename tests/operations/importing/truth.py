"""What happened in a recorded run, for what an import says to be held against."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nemesrv.chaos.scenarios.model import Scenario

CLIENT_ID = re.compile(r"@([\w-]+)#")


class Transition(NamedTuple):
    at_ms: float
    name_server: str
    broker: str
    address: str
    what: str
    """came or lost."""


def transitions(rows: Iterable[Mapping[str, Any]]) -> list[Transition]:
    """When each NameServer took a broker's address into its tables, and when it dropped it."""
    found: list[Transition] = []
    held: set[tuple[str, str, str]] = set()
    for row in sorted(rows, key=lambda row: row["time_ms"]):
        if row["role"] != "name_server":
            continue
        key = (row["node"], row.get("broker_name") or "", row.get("address") or "")
        if row["event"] == "started":
            held = {one for one in held if one[0] != row["node"]}
        elif row["event"] == "registration" and not row.get("code") and key not in held:
            held.add(key)
            found.append(Transition(row["time_ms"], *key, "came"))
        elif row["event"] == "broker_dropped" and key in held:
            held.discard(key)
            found.append(Transition(row["time_ms"], *key, "lost"))
    return found


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done, or that a hypothesis says was done."""

    do: str
    nodes: frozenset[str]
    pairs: frozenset[frozenset[str]] = frozenset()
    """Of a fault of links: who could not reach whom."""
    stream: str = "both"


_SILENT = frozenset({"black_hole", "packet_loss", "syn_drop", "half_open", "cut"})
_KIND_GROUPS = {"ns": "name_servers", "broker": "brokers", "producer": "producers", "consumer": "consumers"}


def done(entries: Iterable[Mapping[str, Any]], nodes: Iterable[str], names: Mapping[str, str]) -> list[Done]:
    """A timeline in the scenario language, ends of faults left out; `names`: what the import calls a node → ours."""
    everybody = sorted(nodes)

    def who(word: str) -> set[str]:
        word = word.strip()
        if word in names or word in everybody:
            return {names.get(word, word)}
        if word in ("*", "all"):
            return set(everybody)
        groups = {"clients": ("producer", "consumer"), "servers": ("ns", "broker")}
        kinds = groups.get(word) or tuple(kind for kind, group in _KIND_GROUPS.items() if group == word)
        return {node for node in everybody if node.startswith(kinds)} if kinds else {word}

    found = []
    for entry in entries:
        do = entry["do"]
        if do in ("heal", "resume", "restart", "add_write_perm", "unregister"):
            continue
        nodes_ = frozenset(node for word in entry.get("nodes") or () for node in who(word))
        pairs: set[frozenset[str]] = set()
        stream = entry.get("stream") or "both"
        for link in entry.get("links") or ():
            one, _, other = link.partition("<->")
            if not other:
                shape, *alone = link.split()
                stream = {"into": "into", "out_of": "out_of"}.get(shape, stream)
                pairs |= {
                    frozenset({node, peer})
                    for word in alone
                    for node in who(word)
                    for peer in everybody
                    if peer != node
                }
                continue
            pairs |= {frozenset({a, b}) for a in who(one) for b in who(other) if a != b}
        if do == "name_server_list":
            nodes_ = frozenset(names.get(name, name) for name in entry["name_servers"])
        if do in ("wipe_write_perm", "register"):
            nodes_ = frozenset({entry["broker"].partition("/")[0]})
        found.append(Done("silent" if do in _SILENT else do, nodes_, frozenset(pairs), stream))
    return found


def truly_done(scenario: Scenario, nodes: Iterable[str]) -> list[Done]:
    """What the scenario's timeline did."""
    document = scenario.model_dump(mode="json")
    return done(document["timeline"], nodes, {})


def is_true(said: list[Done], true: list[Done]) -> bool:
    """Whether all of what is said was done, and it is the fault itself.

    As logs can tell it: a NameServer that was killed or stopped has the same lines; what a NameServer did not hear
    leaves the same lines as what passed in neither direction; links of a host that nobody used tell nothing.
    """
    return bool(said) and bool(true) and all(any(_same(one, other) for other in true) for one in said)


def _same(said: Done, true: Done) -> bool:
    if said.do == "silent" and true.do == "silent":
        if true.stream in ("both", "upstream"):
            return _covers(said.pairs, true.pairs) and said.stream in ("both", "upstream", "into", "out_of")
        return said.pairs == true.pairs and said.stream not in ("both", "upstream")
    name_servers = all(node.startswith("ns-") for node in true.nodes)
    dos = {"kill", "stop"} if name_servers and true.do in ("kill", "stop") else {true.do}
    if true.do == "register":
        dos.add("switch")
    return said.do in dos and said.nodes == true.nodes


def _covers(said: frozenset[frozenset[str]], true: frozenset[frozenset[str]]) -> bool:
    """All links of a broker and NameServers that are true, and none that is not."""
    among_servers = {pair for pair in true if all(node.startswith(("ns-", "broker-")) for node in pair)}
    of_name_servers = {pair for pair in among_servers if any(node.startswith("ns-") for node in pair)}
    return said <= true and of_name_servers <= said


def names_of(topology: Mapping[str, Any], addresses: Mapping[str, str]) -> dict[str, str]:
    """What an import calls a node → what it was, by its address; of clients by their id."""
    node_at = {address: node for node, address in addresses.items()}
    names = {}
    for name, own in topology["name_servers"].items():
        names.update((name, node_at[address]) for address in own if address in node_at)
    for name, ids in topology["brokers"].items():
        for number, own in ids.items():
            called = name if number == "0" else f"{name}/{number}"
            names.update((called, node_at[address]) for address in own if address in node_at)
    for name, client in topology["clients"].items():
        if (found := CLIENT_ID.search(client.get("id") or "")) is not None:
            names[name] = found[1]
    return names
