"""Our client made wrong in one way each: what exactly one rule must call INVALID. Who plants none is the clean twin.

A defect shows in the situations `only` (its rule's, where it names none), so that every other rule is judged by what
the clean twin did: planted everywhere, many defects are seen by several rules, for good reasons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nemesrv.conformance.rules import RULES
from nemesrv.conformance.rules.choosing import LEAVES
from nemesrv.remoting.errors import ConnectError, RequestTimeout
from nemesrv.remoting.node.profile import Profile
from tests.conformance.client import Client
from tests.conformance.plants import (
    ISOLATES,
    does_not_shuffle,
    gives_up,
    goes_back,
    is_patient,
    keeps_silent_connections,
    leaves_on_code,
    leaves_once,
    name_server,
    never_rebalances_again,
    polls_by_itself,
    receives_twice,
    rests_after_a_failure,
    starts_at_the_first,
    stays,
    storms,
    takes,
    takes_no_list,
    takes_turns,
    tells_of_losses,
    time_outs_add,
    tries_again,
    without_new_brokers,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    name: str
    rule: str
    what: str
    plant: Callable[[Client], None] = lambda client: None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Of the producer's or consumer's config."""
    only: tuple[str, ...] = ()
    profile: Profile = Profile.V5_X
    heals: frozenset[str] = frozenset()
    """Rules that even the clean twin breaks, and this client does not."""
    repeats: int = 1
    """So often each situation is needed, where chance is involved."""

    @property
    def situations(self) -> tuple[str, ...]:
        return self.only or RULES[self.rule].situations


def _leaving(rule: str) -> Defect:
    situation = RULES[rule].situations[0]
    return Defect(
        name=f"stays-{situation.replace('_', '-')}",
        rule=rule,
        what=f"does not leave a NameServer that is put through {situation}",
        plant=name_server(stays),
        only=(situation,),
    )


_ALL = (
    Defect(
        name="does-not-shuffle",
        rule="list_order",
        what="the list in use is as it was told",
        plant=name_server(does_not_shuffle),
        only=(*LEAVES, "all_gone"),
        repeats=3,
    ),
    Defect(
        name="starts-at-the-first",
        rule="start",
        what="the first NameServer is always the first that it was told",
        plant=name_server(starts_at_the_first),
    ),
    Defect(
        name="leaves-once",
        rule="sticky",
        what="leaves a NameServer that answers, at its third poll",
        plant=leaves_once,
    ),
    Defect(
        name="goes-back",
        rule="next",
        what="goes back to the one before at its third choice",
        plant=name_server(goes_back),
        only=("all_gone",),
    ),
    *(
        _leaving(rule)
        for rule in (
            "leaves_on_refused",
            "leaves_on_syn_dropped",
            "leaves_on_silence",
            "leaves_on_close",
            "leaves_on_reset",
            "leaves_on_closed_at_accept",
        )
    ),
    Defect(
        name="leaves-on-code-1",
        rule="leaves_on_error_code",
        what="goes to another NameServer after an error code",
        plant=name_server(leaves_on_code),
        only=("error_code",),
    ),
    Defect(
        name="leaves-on-code-17",
        rule="leaves_on_code_17",
        what="goes to another NameServer after TOPIC_NOT_EXIST",
        plant=name_server(leaves_on_code),
        only=("topic_not_exist",),
    ),
    Defect(
        name="one-try-too-many",
        rule="tries_refused",
        what="tries another NameServer in the same call when one refuses",
        plant=tries_again(ConnectError),
    ),
    Defect(
        name="goes-on-after-silence",
        rule="tries_silent",
        what="tries another NameServer in the same call when one does not answer",
        plant=tries_again(RequestTimeout),
    ),
    Defect(
        name="connects-too-long",
        rule="connect_timeout_s",
        what="waits 3.5 s for a connection",
        settings={"connect_timeout_ms": 3_500},
        only=("one_unreachable",),
    ),
    Defect(
        name="waits-too-long",
        rule="answer_timeout_s",
        what="waits 4 s for an answer",
        plant=name_server(is_patient),
        only=("silent", "black_hole", "one_dead"),
    ),
    Defect(
        name="time-outs-add",
        rule="timeouts_add",
        what="an answer has 3 s after a connect that took 3 s",
        plant=name_server(time_outs_add),
        heals=frozenset({"failover"}),  # so it is what 4.9.8 lacks
        profile=Profile.V4_9,
    ),
    Defect(
        name="keeps-silent-connections",
        rule="closes_on_silence",
        what="leaves the connection open when it leaves a silent NameServer",
        plant=name_server(keeps_silent_connections),
    ),
    Defect(
        name="takes-turns",
        rule="phase_lock",
        what="takes turns, the dead NameServer's included",
        plant=name_server(takes_turns),
        only=("one_dead",),
    ),
    Defect(name="never-recovers", rule="failover", what="is 4.9.8 (apache/rocketmq#7056)", profile=Profile.V4_9),
    Defect(
        name="polls-late",
        rule="poll_period_s",
        what="polls each 33 s",
        settings={"poll_name_server_interval_ms": 33_000},
        only=("quiet", "slow"),
    ),
    Defect(
        name="fixed-delay",
        rule="poll_kind",
        what="polls 30 s after the end of the last round",
        plant=polls_by_itself(lambda number: 30.0),
    ),
    Defect(
        name="one-poll-late",
        rule="poll_jitter_s",
        what="its third poll comes 2 s late",
        plant=polls_by_itself(lambda number: 32.0 if number == 3 else 30.0),
        only=("quiet",),
    ),
    Defect(
        name="takes-no-list", rule="list_change_s", what="keeps the first list that it was given", plant=takes_no_list
    ),
    Defect(
        name="storms", rule="storm", what="asks five times for a route that is not there", plant=name_server(storms)
    ),
    Defect(
        name="gives-up",
        rule="back_after_all_gone_s",
        what="asks no NameServer after two failures",
        plant=name_server(gives_up),
    ),
    Defect(
        name="keeps-a-dead-broker",
        rule="killed_broker_s",
        what="takes no route without a broker that it knows",
        plant=takes(lambda old, new: old),
        only=("broker_killed",),
    ),
    *(
        Defect(
            name=f"isolates-{rule.removesuffix('_broker_s')}",
            rule=rule,
            what="sends nothing to a broker after it failed once",
            settings=ISOLATES,
        )
        for rule in ("silent_broker_s", "refusing_broker_s", "unreachable_broker_s")
    ),
    Defect(
        name="keeps-an-unrouted-broker",
        rule="unrouted_broker_s",
        what="takes no route without a broker that it knows",
        plant=takes(lambda old, new: old),
    ),
    Defect(
        name="tells-of-losses",
        rule="sends_lost",
        what="tells of every third send that it failed",
        plant=tells_of_losses,
    ),
    Defect(name="rests", rule="send_stall_s", what="sends nothing for 25 s", plant=rests_after_a_failure),
    Defect(
        name="no-retries",
        rule="send_retries",
        what="tries one broker",
        settings={"retry_times_when_send_failed": 0},
    ),
    Defect(
        name="takes-no-broker-back",
        rule="returned_broker_s",
        what="takes no brokers but those that it had",
        plant=takes(without_new_brokers),
    ),
    Defect(
        name="keeps-its-queues-killed",
        rule="queues_of_killed_s",
        what="takes no queues of another consumer after its first 35 s",
        plant=never_rebalances_again,
    ),
    Defect(
        name="keeps-its-queues-stopped",
        rule="queues_of_stopped_s",
        what="takes no queues of another consumer after its first 35 s",
        plant=never_rebalances_again,
    ),
    Defect(
        name="receives-twice",
        rule="received_twice",
        what="hands every message to its listener twice",
        plant=receives_twice,
    ),
)

DEFECTS: Mapping[str, Defect] = {defect.name: defect for defect in _ALL}
