"""Every send that ended `ok` is received by a consumer, or found by the final reads.

A message that nobody received and that the final read of its queue does not hold is lost, when that read was complete
(`read_done`). When it was not, nobody knows: UNKNOWN. A send that ended `info` or `fail` promises nothing. SEND_OK of a
SYNC_MASTER promises that a slave has the message, too, and so is wrong while no slave of its runs. A broker that is
started again has recovered (`boot`) every queue up to what it had acknowledged, whoever has received that. The answer's
offsetMsgId names the broker's address and the message's offset in the commit log, so an operator finds the message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from typing import Any

from ....clients.consumer.config import dead_letter_topic
from ....clients.consumer.send_back import TO_BROKER
from ....remoting.errors import LocalProtocolError
from ....remoting.message_id import pack_host
from ....remoting.node.network import Address
from ...arrow import Flags, np, pa, pc
from ...oracle.recorded import NodeInfo
from ...oracle.slaves import alone
from ...oracle.world import World
from ...topology import broker_name
from ...verdict import Finding, Verdict
from ..check import Found, Group, Needs, Section, check, foremost
from ..findings import Rule, finding, verdict_by_counts, wrong_or_late
from ..plain.part import (
    PLACE,
    QUEUE,
    Gathering,
    Part,
    Reading,
    Row,
    Together,
    began_ms,
    codes,
    floats,
    is_one_of,
    rows_in,
    with_offset,
)
from ..plain.sent_back import is_dead

_DURABLE = Rule("an acknowledged send is durable", "0 lost")
KINDS = {
    "forgotten": (
        "forgotten at a start",
        Rule("CommitLog: a restarted broker has every message that it had acknowledged", "0 forgotten"),
    ),
    "unsafe": (
        "acknowledged without a slave",
        Rule("brokerRole=SYNC_MASTER: SEND_OK when a slave has the message", "SLAVE_NOT_AVAILABLE"),
    ),
    "lost": ("lost", _DURABLE),
    "under_another_id": (
        "answered another message's id",
        Rule("MessageDecoder.createMessageId: an offsetMsgId has the message's physical offset", "0 wrong ids"),
    ),
    "with_another_address": (
        "answered another broker's id",
        Rule("MessageDecoder.createMessageId: an offsetMsgId has its broker's own address", "0 wrong ids"),
    ),
    "unread": ("not read", _DURABLE),
    "not_dead": (
        "dead letter lost",
        Rule("SendMessageProcessor.consumerSendMsgBack: after maxReconsumeTimes into %DLQ%", "0 lost"),
    ),
}
"""What may be wrong with an acknowledged send: the kind of its finding, and the rule. forgotten: its broker's next
process has recovered the queue up to an older offset. unsafe: a SYNC_MASTER acknowledged it while no slave of its ran.
lost: nobody received it, and no final read has it. under_another_id: its record has another offsetMsgId than answered.
with_another_address: the address in the answer's offsetMsgId is none of its broker's. unread: as lost, but the final
read of its queue is incomplete. not_dead: its broker took it back after its last failure, and no final read has it."""
_OF_BROKERS = ("forgotten", "under_another_id", "with_another_address")
_COUNTS = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")
_ALLOWED = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}
_ORDER = [kind for kind, _ in KINDS.values()]


def fates(part: Part, world: World) -> Found:
    """How many of these sends were acknowledged, received, only in final reads, and of each of KINDS; messages that
    share a key count as one, received as soon as one of them is."""
    sends = with_offset(part.of("send", types=("ok",)))  # of a delayed message messages_delivered tells
    received = _keys_of(sends, part.of("receive"))
    read = ~received & _keys_of(sends, part.of("read"))
    whole = {(row.topic, row.broker_name, row.queue_id) for row in part.control.rows("read_done")}
    counts = {"acknowledged": len(sends), "received": int(received.sum()), "only_in_final_reads": int(read.sum())}
    missing = rows_in(sends.filter(~received & ~read))
    wrong = [("lost" if tuple(row[name] for name in QUEUE) in whole else "unread", row) for row in missing]
    wrong += [("unsafe", row) for row in rows_in(sends.filter(_unsafe(sends, world)))]
    (compared, misplaced), of_another = _misplaced(sends, part.of("read")), _of_another(sends, world)
    wrong += [("with_another_address", row) for row in rows_in(sends.filter(of_another))]
    wrong += [("under_another_id", row) for row in rows_in(sends.filter(misplaced & ~of_another))]
    wrong += [("not_dead", row) for row in _not_dead(part, world, whole)]
    wrong += [("forgotten", row) for row in rows_in(sends.filter(_forgotten(sends, part, world)))]
    counts |= {"ids_compared": int(compared.sum())} | Counter(what for what, _ in wrong)
    return Found(counts, foremost(_finding(*one, world) for one in wrong))


FATES = Reading(
    Together.MESSAGE,
    ("send", "receive", "read", "sent_back"),
    ("type", "f", *PLACE, "attempt", "address", "msg_id", "duration_ms"),
    fates,
    types=("ok", "info"),
)


@check(
    says="every message that a broker acknowledged was received by a consumer or is still stored in a broker, "
    "under the offsetMsgId of the answer",
    group=Group.MESSAGES,
    section=Section.MESSAGES,
    accuses_object=("acknowledged without a slave", "lost", "dead letter lost"),
    needs=(Needs.MESSAGES,),
    readings=(FATES,),
    tells=lambda measured: _told(measured),
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: acknowledged sends. Violations: those that are lost."""
    fates = history.counted(FATES, world)
    of = {**dict.fromkeys((*_COUNTS, *KINDS), 0), **fates.counts}
    findings = sorted(fates.findings, key=lambda one: _ORDER.index(one.kind))
    why, allowed = (
        f"{of['lost']} of {of['acknowledged']} acknowledged sends are neither received nor in the final reads",
        _ALLOWED,
    )
    if of["unsafe"] and not of["lost"]:
        why = f"{of['unsafe']} of {of['acknowledged']} sends were acknowledged by a SYNC_MASTER without a slave"
    if of["forgotten"] and not of["lost"]:
        one, allowed = findings[0], {**_ALLOWED, "formula": "0 forgotten"}
        why = (
            f"{one.subject} forgot {of['forgotten']} of {of['acknowledged']} acknowledged sends when it was started"
            f" again: offset {one.more['offset']} of {one.topic}, queue {one.more['queue_id']}, is not in what it "
            "recovered"
        )
    if of["not_dead"] and not of["lost"] + of["unsafe"] + of["forgotten"]:
        why = f"{of['not_dead']} messages that failed too often are not among the dead letters"
    wrong_ids = of["under_another_id"] + of["with_another_address"]
    if wrong_ids and not of["lost"] + of["unsafe"] + of["forgotten"] + of["not_dead"]:
        allowed = {**_ALLOWED, "formula": "0 wrong ids", "row": findings[0].row}
        why = f"{wrong_ids} of {of['acknowledged']} sends were answered with a wrong offsetMsgId"
    return verdict_by_counts(
        examined=of["acknowledged"],
        wrong=of["lost"] + of["unsafe"] + of["forgotten"] + of["not_dead"] + wrong_ids,
        unsure=of["unread"],
        why=why,
        why_unsure=f"{of['unread']} acknowledged sends were not received, and the final reads of their queues are "
        "incomplete",
        nothing="no send was acknowledged",
        unclear=world.lost_by_hand if of["lost"] + of["not_dead"] else "",
        measured={name: count for name, count in of.items() if name in _COUNTS or count},
        allowed=allowed,
        findings=findings,
    )


def _told(measured: Mapping[str, Any]) -> str:
    """ "1,962 acknowledged, 1,960 received, 2 only in final reads, 0 lost" """
    few = [name for name in ("only_in_final_reads", *KINDS) if name != "lost" and measured.get(name)]
    shown = ("acknowledged", "received", *few, "lost")
    return ", ".join(f"{measured[name]:,} {name.replace('_', ' ')}" for name in shown if name in measured)


def _keys_of(sends: pa.Table, others: pa.Table) -> Flags:
    """Of each send, whether one of the others has its key."""
    return pc.is_in(sends["msg_key"], value_set=others["msg_key"].combine_chunks()).to_numpy()


def _not_dead(part: Part, world: World, whole: Set[tuple[str, str, int]]) -> Iterator[Row]:
    """What brokers took back for the last time, and what is not among the group's dead letters there."""
    groups = {member: dead_letter_topic(group) for group, members in world.groups.items() for member in members}
    reads = part.of("read")
    reads = reads.filter(is_one_of(reads["topic"], sorted({*groups.values()})))
    here = {(row["topic"], row["broker_name"], row["msg_key"]) for row in rows_in(reads)}
    for row in rows_in(part.of("sent_back")):
        topic, broker = groups.get(row["node"], ""), row["broker_name"]
        if row["f"] == TO_BROKER and is_dead(row, world) and (topic, broker, 0) in whole:
            faults = world.process_faults(broker)
            taken = row["time_ms"] - (row["duration_ms"] or 0.0), row["time_ms"]
            is_hit = any(fault.overlaps(*taken) for fault in faults)  # or a slave acted as the broker
            if not is_hit and (topic, broker, row["msg_key"]) not in here:
                yield row


def _unsafe(sends: pa.Table, world: World) -> Flags:
    """Of each send, whether it was acknowledged while its broker had no slave."""
    began, ended, found = began_ms(sends), floats(sends["time_ms"]), np.zeros(len(sends), bool)
    for name, stretches in alone(world).items():
        of_broker = pc.fill_null(pc.equal(sends["broker_name"], name), False).to_numpy()
        for start_ms, end_ms in stretches:
            found |= of_broker & (start_ms <= began) & (ended <= end_ms)
    return found


def _forgotten(sends: pa.Table, part: Part, world: World) -> Flags:
    """Of each send, whether a later process of its broker has recovered its queue up to an offset before it."""
    ended, offsets, found = floats(sends["time_ms"]), floats(sends["offset"]), np.zeros(len(sends), bool)
    apart_ms = world.timers.clocks_ms
    for boot in part.control.rows("boot"):
        if not boot.incarnation or not world.is_ours(boot.node) or world.lost_by_hand:
            continue
        before = ended < boot.time_ms - apart_ms
        before &= pc.fill_null(pc.equal(sends["broker_name"], boot.node), False).to_numpy()
        recovered = boot.said.get("recovered") or {}
        for row in sends.filter(before).group_by(["topic", "queue_id"]).aggregate([]).to_pylist():
            end = (recovered.get(row["topic"]) or {}).get(str(row["queue_id"]), 0)
            of_queue = pc.and_(pc.equal(sends["topic"], row["topic"]), pc.equal(sends["queue_id"], row["queue_id"]))
            found |= before & pc.fill_null(of_queue, False).to_numpy() & (offsets >= end)
    return found


def _misplaced(sends: pa.Table, reads: pa.Table) -> tuple[Flags, Flags]:
    """Of each send, whether the final reads found its message in its place with an id; and whether with another id."""
    columns, here = ["msg_key", *PLACE, "msg_id"], pc.is_valid(sends["msg_id"]).to_numpy()
    both = pa.concat_tables([sends.select(columns), reads.filter(pc.is_valid(reads["msg_id"])).select(columns)])
    place, name, count = codes(both, *columns[:-1]), codes(both, *columns), len(sends)
    found = here & np.isin(place[:count], place[count:])
    return found, found & ~np.isin(name[:count], name[count:])


def _of_another(sends: pa.Table, world: World) -> Flags:
    """Of each send, whether the broker that answered is of our programs and never had the address in the id."""
    of_id = pc.utf8_slice_codeunits(sends["msg_id"], 0, -16)  # 16 digits are the offset
    asked = sends.select(["broker_name", "address"]).append_column("of_id", of_id)
    alike = codes(asked, *asked.column_names)
    each = rows_in(asked.take(np.unique(alike, return_index=True)[1]))
    brokers = [(broker_name(node.name), node) for node in world.ours("broker", "slave")]
    own = {(name, at): _hosts(node, world) for name, node in brokers for at in node.addresses}
    hosts = [own.get((row["broker_name"], row["address"])) for row in each]
    wrong = [bool(of and row["of_id"] and row["of_id"] not in of) for row, of in zip(each, hosts, strict=True)]
    return np.array(wrong, bool)[alike]


def _hosts(broker: NodeInfo, world: World) -> frozenset[str]:
    """Its addresses in hex; empty if a host is a name, for which records have 127.0.0.1."""
    own, said = [Address.parse(at) for at in broker.addresses], str(world.setting(broker.name, "brokerIP1"))
    try:
        return frozenset(
            pack_host(at._replace(host=host or at.host)).hex().upper() for at in own for host in ("", said)
        )
    except LocalProtocolError:
        return frozenset()


def _finding(what: str, send: Row, world: World) -> Finding:
    """Of a lost send out of bounds until it may have been lost."""
    kind, rule = KINDS[what]
    at_ms, producer, broker = send["time_ms"], send["node"], send["broker_name"]
    until_ms, next_ = _next(send, world) if what in ("lost", "forgotten") else (None, {})
    return finding(
        (*((broker, producer) if what in _OF_BROKERS else (producer, broker)), send["topic"]),
        kind,
        (at_ms, at_ms),
        rule,
        out=(at_ms, until_ms),
        more={**{name: send[name] for name in ("msg_key", "queue_id", "offset")}, **next_},
        **wrong_or_late(what != "unread"),
    )


def _next(send: Row, world: World) -> tuple[float | None, dict[str, Any]]:
    """When its broker was next started, else when its next fault began: in this the message may have been lost."""
    starts = [(life.start_ms, "restart") for life in world.lives_of(send["broker_name"])]
    faults = [(fault.start_ms, "fault") for fault in world.process_faults(send["broker_name"])]
    after = ((at_ms, {"next": what}) for at_ms, what in sorted(starts) + sorted(faults) if at_ms > send["time_ms"])
    return next(after, (None, {}))
