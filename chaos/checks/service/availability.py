"""The share of the clients' operations that succeeded, over time; in quiet times all must succeed.

    success ratio  1 ────────────┐            ┌──────────── quiet: 1, less what the machine's lateness explains
                                 └── fault ───┘             fault: what the scenario asks (`availability_floor`)
                   buckets of equal length, at most 200

What a broker's own topic forbids is refused at any time (plain/forbidden.py). A broker never refuses a send to a queue
that its topic has, and a master refuses a send as a slave does (code 14) only while its disk is full.

In quiet (no fault in force, and R + C + P + J + A + T since the last) every operation must succeed, the prober's
look-ups at NameServers that no client sits at among them; and each try of a send, though a retry at another broker may
save it, and each message that a consumer sends back: a broker that is routed to accepts what it is sent. A scenario may
set one floor for everything after its first fault. What each producer must do while a fault lasts is
living_are_used's, and how soon it succeeds again recovery_time's.

Operations that never ended are not counted. One that nobody answered while its client or a server stood still is of no
quiet time (plain/slots.py). Other failures that lateness explains make it UNKNOWN (shortfalls.py).
"""

from collections.abc import Iterator

from ...oracle.quiet import settle_ms
from ...oracle.reach import first_harm_ms
from ...oracle.recovery import LOOK_UP
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import Rule, at_no_time, finding, rounded, verdict_by_counts
from ..plain.forbidden import FORBIDDEN, FROM_ITS_QUEUES, TO_A_MASTER, TO_ITS_QUEUES, Duty
from ..plain.part import Gathering
from ..plain.slots import SLOTS
from ..record.shortfalls import Shortfall, asks_first, is_explained, lateness_of, lets_fail
from ..record.slots import OPERATIONS, TRY, Tally
from ..record.tallies import Tallies

_TAKEN = (TO_A_MASTER, TO_ITS_QUEUES, FROM_ITS_QUEUES)
_BELOW = "below the scenario's availability_floor"
_FLOOR_ROW = (
    "availability_floor: from the first fault or act by hand on, the scenario's share of sends, pulls and look-ups "
    "succeeds"
)
_ROW = "quiet from R + C + P + J + A + T after the end of a fault"


@check(
    says="every send, send-back, pull and route look-up succeeds unless a fault, or the recovery after it, explains "
    "the failure; a broker refuses, with RocketMQ's code, pulls that a permission forbids, and requests for "
    "queues that a topic lacks, but no send to a queue that the topic has; a master refuses no send with code 14, "
    "but each while its disk is full; a SYNC_MASTER without a slave answers no send with code 12; with a slave it "
    "answers SEND_OK only when the slave can have the message, and code 12 only after syncFlushTimeout",
    group=Group.SERVICE,
    section=Section.OPERATIONS,
    is_of_the_whole=True,
    needs=(Needs.MESSAGES,),
    readings=(SLOTS, FORBIDDEN),
    outside=True,
    settles=settle_ms,
)
def judge(history: Gathering, world: World) -> Verdict:
    """Examined: operations where a floor holds. Violations: failures below it."""
    floor = world.run.get("availability_floor")
    tallied = Tallies(history.counted(SLOTS, world).of, world, history.control)
    in_quiet = [*tallied.tries.values(), *tallied.quiet.values()]
    of_scenario = [*tallied.faulted.values()] if floor is not None else []
    failed_at = {broker for (_, broker), tally in tallied.tries.items() if tally.bad}
    asked = sorted(history.counted(FORBIDDEN, world).of.items())
    told = [(of, tally) for of, tally in asked if of[2] not in _TAKEN or (tally.bad and of[0] not in failed_at)]
    forbidden = [_forbidden(*one) for one in told]
    examined = sum(tally.ended for tally in (*in_quiet, *of_scenario)) + sum(one.examined for one in forbidden)
    allowed = {
        "bound_ms": None,
        "formula": "quiet: all succeed" + (f"; from the first fault: {floor}" if floor is not None else ""),
        "tolerance_ms": 0,
        "floor": floor,
        "settle_ms": rounded(settle_ms(world.but_stalls())),
        "row": _ROW,
    }
    short = [*_refused(tallied), *_in_quiet(tallied, world), *_below(tallied, world, floor)]
    late_ms = [lateness_of(fall, tallied, world) for fall in short]
    at = zip(short, late_ms, strict=True)
    wrong = [fall for fall, lag_ms in at if not is_explained(fall, lag_ms, world)]
    late = [fall for fall in short if fall not in wrong]
    failed, unsure = (sum(fall.tally.bad for fall in falls) for falls in (wrong, late))
    done = sum(one.wrong for one in forbidden)
    whys = [f"{failed} of {examined} operations failed where fewer may: {wrong[0].why}"] if wrong else []
    whys += [f"{done} requests were answered as the topic or the role of the broker forbids"] if done else []
    lag_ms = max((lag_ms for lag_ms in late_ms if lag_ms is not None), default=None)
    said = "nobody measured how late timers fired" if lag_ms is None else f"timers fired {lag_ms:.0f} ms late"
    return verdict_by_counts(
        examined=examined,
        wrong=failed + done,
        unsure=unsure,
        why="; ".join(whys),
        why_unsure=f"{unsure} of {examined} operations failed, but {said}",
        nothing="no operation ended in a quiet time, or in a time of the scenario's availability_floor",
        measured=tallied.measured(world),
        allowed=allowed,
        findings=[
            *(_finding(fall, tallied, is_wrong=falls is wrong) for falls in (wrong, late) for fall in falls),
            *forbidden,
        ],
    )


def _forbidden(about: tuple[str, str, Duty], tally: Tally) -> Finding:
    broker, topic, duty = about
    first_ms = tally.first_bad_ms or 0.0
    out = (first_ms, max(tally.last_bad_ms or 0.0, first_ms + 1.0)) if tally.bad else None
    return finding(
        (broker, duty.what, topic),
        duty.kind,
        out or (0.0, tally.last_ms or 0.0),
        at_no_time(duty.row),
        out=out,
        examined=tally.ended,
        wrong=tally.bad,
    )


def _failed(operation: str, client: str, tally: Tally, why: str) -> Shortfall:
    return Shortfall(operation, client, tally.first_bad_ms or 0.0, tally.last_bad_ms or 0.0, tally, why)


def _refused(tallied: Tallies) -> Iterator[Shortfall]:
    """Every try that a broker refused, or did not answer, in a quiet time."""
    for (_, broker), tally in sorted(tallied.tries.items()):
        if tally.bad:
            why = (
                f"{broker} refused, or did not answer, {tally.bad:,} of {tally.ended:,} tries of sends in a quiet time"
            )
            yield _failed(TRY, broker, tally, why)


def _in_quiet(tallied: Tallies, world: World) -> Iterator[Shortfall]:
    """Every operation that failed there, but those that a client's own list of NameServers may make fail."""
    in_order = sorted(tallied.quiet.items(), key=lambda one: (one[0][0], [*OPERATIONS].index(one[0][1]), one[0][2]))
    for (from_ms, operation, client), tally in in_order:
        by_list = lets_fail(world, from_ms, operation, client) or (
            operation == "send" and asks_first(tallied, world, client, from_ms, tally)
        )
        if tally.bad and not by_list:
            yield _failed(operation, client, tally, "failed in a quiet time")


def _below(tallied: Tallies, world: World, floor: float | None) -> Iterator[Shortfall]:
    """Each kind of operation from the first fault to the end, against the scenario's floor."""
    for operation in (name for name in OPERATIONS if name in tallied.faulted):
        tally = tallied.faulted[operation]
        if floor is not None and tally.good / tally.ended < floor:
            yield Shortfall(operation, "", first_harm_ms(world) or 0.0, world.end_ms, tally, _BELOW, floor)


def _finding(fall: Shortfall, tallied: Tallies, *, is_wrong: bool) -> Finding:
    more: dict[str, str] = {}
    if fall.why == _BELOW:
        said = f"{fall.tally.good:,} of {fall.tally.ended:,} {OPERATIONS[fall.operation]}"
        more = {"because": f"{said}, and the scenario's availability_floor is {fall.floor:.4g}"}
    elif fall.operation == LOOK_UP and len(tallied.silent) == 1:
        holder = min(tallied.silent)
        more = {"holder": holder, "because": f"{holder} did not answer"}
    return finding(
        fall.client,
        fall.why,
        (fall.start_ms, fall.end_ms),
        Rule(_FLOOR_ROW if fall.why == _BELOW else _ROW, f"at least {fall.floor:.4g} succeed"),
        out=(fall.start_ms, fall.end_ms),
        examined=fall.tally.ended,
        wrong=fall.tally.bad if is_wrong else 0,
        late=0 if is_wrong else fall.tally.bad,
        more={
            "operation": fall.operation,
            "succeeded": fall.tally.good,
            "failed": fall.tally.bad,
            "floor": round(fall.floor, 4),
            **more,
        },
    )
