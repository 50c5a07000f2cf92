"""Which messages that a listener failed, and that were sent back, their group did not have again in time, or changed.

sent_back 1 ── 10 s ─► received from %RETRY%group: consumed, or sent_back 2 ── 30 s ─► received again

A message that was sent back is a delayed message of the group's retry topic: its level is 3 at the first failure, and
one more at each further failure (`SendMessageProcessor.consumerSendMsgBack`,
`DefaultMQPushConsumerImpl.sendMessageBackAsNormalMessage`). After maxReconsumeTimes failures it is a dead letter, which
nobody receives. If it was sent as a new message, only its receipt tells the broker.
"""

import math

from ....clients.consumer.config import retry_topic
from ....clients.consumer.consume_service import KEPT
from ....clients.consumer.send_back import ANEW, FIRST_RETRY_DELAY_LEVEL, TO_BROKER
from ....remoting.node.profile import Profile
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...arrow import pc
from ...history.schema import row_order
from ...oracle.deliveries import askers, delivered
from ...oracle.intervals import Stretch, grouped
from ...oracle.link import MOMENT_MS
from ...oracle.world import World
from .deliveries import LAST, Prompt, Slow, against, near_its_time_ms, stored_ms
from .part import PLACE, Part, Reading, Row, Together, is_one_of, rows_in


def sent_back(part: Part, world: World) -> Prompt:
    """How many came again within D of their delay, and the others."""
    group_of = {member: group.name for group in askers(world) for member in group.members}
    backs = part.of("sent_back")
    backs = backs.filter(is_one_of(backs["f"], (TO_BROKER, ANEW, KEPT)))
    if not len(backs):
        return Prompt()
    came = part.of("receive", "sent_back")
    came = came.filter(pc.starts_with(came["topic"], RETRY_GROUP_TOPIC_PREFIX))
    failed, again = (
        grouped(((group_of.get(row["node"]), row["msg_key"]), row) for row in sorted(rows_in(rows), key=row_order))
        for rows in (backs, came)
    )
    found = Prompt()
    for (group, key), rows in failed.items():
        first: dict[tuple[object, ...], Row] = {}
        for row in again.get((group, key), ()):
            first.setdefault(tuple(row[name] for name in PLACE), row)
        receipts, is_sure, by_brokers = [*first.values()], True, all(row["f"] == TO_BROKER for row in rows)
        for row in rows if group else ():
            if row["f"] != KEPT:
                own = [one for one in receipts if _may_be_of(row, one, world)][:1]
                receipts = [one for one in receipts if one not in own]
                is_changed = any(_is_changed(row, one, world, by_brokers=by_brokers) for one in own)
                found = found.plus(_came_again(row, own, str(group), world, is_changed, is_sure or row["f"] == ANEW))
            is_sure = is_sure and row["f"] == TO_BROKER
    return found


def _may_be_of(back: Row, receipt: Row, world: World) -> bool:
    """Whether this receipt may be of the message that was sent back then; a wall clock that was set does not tell."""
    is_new = back["f"] == ANEW
    made_ms = receipt["born_ms"] if is_new else stored_ms(receipt)
    was_set = world.clocks.get(back["node"] if is_new else receipt["broker_name"])
    since_ms = back["time_ms"] - back["duration_ms"] - MOMENT_MS - world.timers.clocks_ms
    is_there = is_new or receipt["broker_name"] == back["broker_name"]
    return is_there and (made_ms is None or made_ms >= since_ms or bool(was_set))


def _came_again(back: Row, came: list[Row], group: str, world: World, is_changed: bool, is_sure: bool) -> Prompt:
    broker = came[0]["broker_name"] if came else back["broker_name"] if back["f"] == TO_BROKER else ""
    if is_dead(back, world):
        return Prompt()
    level, acked_ms = FIRST_RETRY_DELAY_LEVEL + back["attempt"] - 1, back["time_ms"]
    due = delivered(world, broker, str(level), acked_ms - back["duration_ms"], acked_ms)
    if due is None:
        return Prompt()
    due = due if is_sure else Stretch(-math.inf, due.end_ms)
    one = Slow(
        acked_ms,
        back["msg_key"],
        producer=back["node"],
        topic=retry_topic(group),
        broker_name=broker,
        queue_id=came[0]["queue_id"] if came else 0,
        offset=LAST,
        group=group,
        tries=2 if back["f"] == ANEW else 1,  # its sender wrote it again
        changed=is_changed,
        delay_ms=due.end_ms - acked_ms,
    )
    found = against(one, came, due, near_its_time_ms(world))
    return Prompt(slow=(found._replace(offset=LAST),)) if isinstance(found, Slow) else Prompt(1, found)


def _is_changed(back: Row, came: Row, world: World, *, by_brokers: bool) -> bool:
    """Whether it came with another content; or, of what brokers alone stored again, with another birth."""
    born_ms = back["born_ms"], came["born_ms"]
    is_same = not by_brokers or None in born_ms or abs(born_ms[0] - born_ms[1]) <= near_its_time_ms(world)
    return bool(came["digest"] != back["digest"]) or not is_same


def is_dead(back: Row, world: World) -> bool:
    """Whether the broker made it a dead letter (`AbstractSendMessageProcessor.consumerSendMsgBack`; of a message that
    was sent as a new message, `SendMessageProcessor.handleRetryAndDLQ`: in 4.9 one failure earlier)."""
    limit = world.number(back["node"], "maxReconsumeTimes")
    is_earlier = back["f"] == ANEW and world.timers.profile is Profile.V4_9
    return 0 <= limit <= back["attempt"] - (not is_earlier)


SENT_BACK = Reading(
    Together.MESSAGE,
    ("receive", "sent_back"),
    ("type", "f", "msg_key", *PLACE, "digest", "attempt", "duration_ms", "born_ms"),
    sent_back,
    types=("ok",),
)
