"""Which messages that a listener failed, and that were sent back, their group did not have again in time, or changed.

sent_back 1 ── 10 s ─► received from %RETRY%group: consumed, or sent_back 2 ── 30 s ─► received again

A message that was sent back is a delayed message of the group's retry topic: its level is 3 at the first failure, and
one more at each further failure (`SendMessageProcessor.consumerSendMsgBack`,
`DefaultMQPushConsumerImpl.sendMessageBackAsNormalMessage`). After maxReconsumeTimes failures it is a dead letter, which
nobody receives. If it was sent as a new message, only its receipt tells the broker.
"""

from ....clients.consumer.config import retry_topic
from ....clients.consumer.send_back import ANEW, FIRST_RETRY_DELAY_LEVEL, TO_BROKER
from ....remoting.node.profile import Profile
from ....remoting.topics import RETRY_GROUP_TOPIC_PREFIX
from ...arrow import pc
from ...history.schema import row_order
from ...oracle.deliveries import askers, delivered
from ...oracle.intervals import grouped
from ...oracle.world import World
from .deliveries import LAST, Prompt, Slow, against, near_its_time_ms
from .part import PLACE, Part, Reading, Row, Together, is_one_of, rows_in


def sent_back(part: Part, world: World) -> Prompt:
    """How many came again within D of their delay, and the others."""
    group_of = {member: group.name for group in askers(world) for member in group.members}
    backs = part.of("sent_back")
    backs = backs.filter(is_one_of(backs["f"], (TO_BROKER, ANEW)))
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
        receipts = [*first.values()]
        for number, row in enumerate(rows if group else ()):
            found = found.plus(_came_again(row, receipts[number : number + 1], str(group), world))
    return found


def _came_again(back: Row, came: list[Row], group: str, world: World) -> Prompt:
    broker = came[0]["broker_name"] if came else back["broker_name"] if back["f"] == TO_BROKER else ""
    if _is_dead(back, world):
        return Prompt()
    level, acked_ms = FIRST_RETRY_DELAY_LEVEL + back["attempt"] - 1, back["time_ms"]
    due = delivered(world, broker, str(level), acked_ms - back["duration_ms"], acked_ms)
    if due is None:
        return Prompt()
    one = Slow(
        acked_ms,
        back["msg_key"],
        producer=back["node"],
        topic=retry_topic(group),
        broker_name=broker,
        queue_id=came[0]["queue_id"] if came else 0,
        offset=LAST,
        group=group,
        changed=bool(came) and came[0]["digest"] != back["digest"],
        delay_ms=due.end_ms - acked_ms,
    )
    found = against(one, came, due, near_its_time_ms(world))
    return Prompt(slow=(found._replace(offset=LAST),)) if isinstance(found, Slow) else Prompt(1, found)


def _is_dead(back: Row, world: World) -> bool:
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
