"""Ways for a NameServer or a broker to answer rightly, and too late, or not at all."""

from __future__ import annotations

import inspect

from ....actors.broker.server import Broker
from ....actors.namesrv.server import NameServer
from ....remoting.codes import RequestCode
from ....remoting.command import RemotingCommand
from ....remoting.node.clock import Clock
from ....remoting.transport import Connection, RemotingServer
from ...scenarios.defect import Defect, checks, in_its_parts, replace_part
from ...topology import NodeKind

LATE_S = 2.0
"""Within every time-out, so that nothing fails."""
UNANSWERED_OF = 10

_SENDS = frozenset({RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE})


def _answer_late(server: RemotingServer, clock: Clock, codes: frozenset[int]) -> None:
    """Requests of these codes are done at once, and answered later."""
    endpoint = server._endpoint
    handler = endpoint.handler
    assert handler is not None

    async def later(connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        answer = handler(connection, request)
        done = await answer if inspect.isawaitable(answer) else answer
        await clock.sleep(LATE_S)
        return done

    replace_part(endpoint, "fast_path", None)
    replace_part(endpoint, "handler", lambda c, request: (later if request.code in codes else handler)(c, request))


def _look_ups_late(server: NameServer) -> None:
    _answer_late(server._server, server._context.clock, frozenset({RequestCode.GET_ROUTEINFO_BY_TOPIC}))


def _registrations_late(server: NameServer) -> None:
    _answer_late(server._server, server._context.clock, frozenset({RequestCode.REGISTER_BROKER}))


def _sends_late(broker: Broker) -> None:
    _answer_late(broker._server, broker._context.clock, frozenset(_SENDS))


def _leaves_look_ups_unanswered(server: NameServer) -> None:
    endpoint, asked = server._server._endpoint, 0
    handler = endpoint.handler
    assert handler is not None

    def answer_most(connection: Connection, request: RemotingCommand) -> object:
        nonlocal asked
        asked += request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC
        if request.code == RequestCode.GET_ROUTEINFO_BY_TOPIC and asked % UNANSWERED_OF == 0:
            return None
        return handler(connection, request)

    replace_part(endpoint, "fast_path", None)
    replace_part(endpoint, "handler", answer_most)


def _wakes_no_pull(broker: Broker) -> None:
    replace_part(broker._pull, "arrived", lambda topic, queue_id: None)


DEFECTS = (
    Defect(
        name="name-servers-answer-late",
        what=f"every NameServer answers look-ups after {LATE_S:g} s",
        kinds=(NodeKind.NAME_SERVER,),
        scenario="quiet",
        caught_by=checks("prompt_answers"),
        also=checks("availability"),
        plant=_look_ups_late,
    ),
    Defect(
        name="name-server-leaves-look-ups-unanswered",
        what=f"a NameServer does not answer every {UNANSWERED_OF}th look-up",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario="quiet",
        caught_by=checks("availability"),
        plant=_leaves_look_ups_unanswered,
    ),
    Defect(
        name="name-server-acknowledges-late",
        what=f"a NameServer acknowledges registrations after {LATE_S:g} s",
        kinds=(NodeKind.NAME_SERVER,),
        nodes=("ns-0",),
        scenario="quiet",
        caught_by=checks("prompt_answers"),
        plant=_registrations_late,
    ),
    Defect(
        name="broker-acknowledges-late",
        what=f"a broker acknowledges sends after {LATE_S:g} s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="quiet",
        caught_by=checks("prompt_answers"),
        plant=in_its_parts(_sends_late),
    ),
    Defect(
        name="broker-wakes-no-pull",
        what="a broker wakes no held pull when a message comes, but looks after them every 5 s",
        kinds=(NodeKind.BROKER,),
        nodes=("broker-a",),
        scenario="quiet",
        caught_by=checks("prompt_answers", "timers_kept"),
        plant=in_its_parts(_wakes_no_pull),
    ),
)
