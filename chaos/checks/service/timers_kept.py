"""Every periodic task of every node runs when its own setting says, and takes no longer than its calls may.

Who runs what, and when: oracle/name_server.py, oracle/broker.py, oracle/time_outs.py (clients). What each did and when:
tasks.py, broker_tasks.py, client_tasks.py; each run is a `scheduled_task`. Waits that nobody schedules:
timed_waits.py, held_pulls.py, group_members.py, group_answers.py, isolations.py, expired_channels.py. What nothing has
a client do: unasked_acts.py. What it says of itself: told_brokers.py.
"""

from collections.abc import Iterator
from dataclasses import replace

from ...oracle import name_server
from ...oracle.intervals import grouped
from ...oracle.recorded import Life
from ...oracle.world import World
from ...verdict import Finding, Verdict
from ..check import Group, Needs, Section, check
from ..findings import verdict_of
from ..record.control import Control
from ..routes.promised import polls_within
from .broker_tasks import BrokerTasks
from .client_tasks import ClientTasks
from .expired_channels import ExpiredChannels
from .group_answers import GroupAnswers
from .group_members import Members
from .held_pulls import HeldPulls
from .isolations import Isolations
from .tasks import Tasks
from .timed_waits import Waits
from .told_brokers import Told
from .unasked_acts import Unasked

_KINDS = ("name_server", "broker", "slave", "producer", "consumer")


@check(
    says="each periodic task, wait and time-out comes at its configured time; no client or broker acts without reason",
    group=Group.TIMERS,
    section=Section.CLIENTS,
    needs=(Needs.WIRE,),
    tells=lambda m: f"{m.get('acts', 0):,} firings of {m.get('tasks', 0):,} timers",
)
def judge(control: Control, world: World) -> Verdict:
    """Examined: runs of periodic tasks, the waits between rebalances, and look-ups. Violations: those out of time."""
    findings: list[Finding] = []
    for node in world.ours(*_KINDS) if control.rows("scheduled_task") else ():
        for life in world.lives_of(node.name):
            findings += _of_process(control, world, life, node.kind)
    findings += polls_within(control, world)
    verdict = verdict_of(
        findings,
        measured={"tasks": len({(f.subject, f.object) for f in findings}), "acts": sum(f.examined for f in findings)},
        nothing="no node recorded a periodic task",
        noun="acts were early, late or without a reason",
    )
    return replace(verdict, undecided=_untold(world)) if verdict.examined else verdict


def _of_process(control: Control, world: World, life: Life, kind: str) -> Iterator[Finding]:
    match kind:
        case "broker" | "slave":  # the same program, and tasks of its own beside
            kind = "broker"
            yield from BrokerTasks(control, world, life).findings()
            yield from HeldPulls(control, world, life, kind).findings()
            yield from ExpiredChannels(control, world, life, kind).findings()
        case "name_server":
            yield from Tasks(control, world, life, kind, name_server.tasks(world, life.node)).findings()
            yield from ExpiredChannels(control, world, life, kind).findings()
        case _:
            yield from ClientTasks(control, world, life, kind).findings()
            yield from Unasked(control, world, life, kind).findings()
            yield from Members(control, world, life, kind).findings()
            yield from Told(control, world, life, kind).findings()
            if kind == "consumer":
                yield from GroupAnswers(control, world, life, kind).findings()
            if kind == "producer":
                yield from Isolations(control, world, life, kind).findings()
    yield from Waits(control, world, life, kind).findings()


def _untold(world: World) -> dict[str, str]:
    """The nodes whose timers nobody sees, by who made them."""
    others = (n for n in world.of_kind(*_KINDS) if not n.is_ours and not n.is_under_test)
    made = grouped((node.implementation, node.name) for node in others)
    return {f"timers of {', '.join(names)}": f"{by} does not say when they ran" for by, names in made.items()}
