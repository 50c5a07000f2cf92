"""Which log decides which check: for those that the record of an import cannot support. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

_NAME_SERVERS = "every NameServer's namesrv.log"
_BROKERS = "every broker's broker.log and remoting.log"
_CLIENTS = "the clients' rocketmq_client.log"
_SENDS = "a trace of messages (who sent and got what): no log of RocketMQ's has it, `nemesrv run` and `conform` do"
_WIRE = "what passed on the wire: a run with Apache's servers behind fronts (`--implementation apache-…`) has it"

NEEDS: dict[str, tuple[str, ...]] = {
    "routes_converge": (_NAME_SERVERS, _BROKERS),
    "routes_are_true": (_NAME_SERVERS, _BROKERS),
    "no_false_eviction": (_NAME_SERVERS, _BROKERS),
    "registrations_are_kept": (_NAME_SERVERS, _BROKERS),
    "one_master": (_NAME_SERVERS,),
    "no_resurrection": (_NAME_SERVERS, _BROKERS),
    "routes_as_registered": (_NAME_SERVERS, _BROKERS, _WIRE),
    "answers_are_true": (_WIRE,),
    "client_routes_are_true": (_CLIENTS, _NAME_SERVERS),
    "dead_brokers_avoided": (_SENDS,),
    "dead_name_servers_left": (_CLIENTS,),
    "name_server_selection": (_CLIENTS,),
    "prompt_answers": (_WIRE,),
    "timers_kept": (_WIRE,),
    "done_by_hand": (_NAME_SERVERS, _WIRE),
    "answers_asked_for": (_WIRE,),
}


def needs(check: str) -> str:
    """Which logs decide it."""
    return " and ".join(NEEDS.get(check, (_SENDS,)))


def logs_for(roles: Mapping[str, str], logged: Collection[str]) -> dict[str, str]:
    """By role, whose logs would say more: those that are missing."""
    missing = sorted(node for node in roles if node not in logged)
    return {node: _LOG[roles[node]] for node in missing if roles[node] in _LOG}


_LOG = {
    "name_server": "namesrv.log",
    "broker": "broker.log and remoting.log",
    "slave": "broker.log and remoting.log",
    "producer": "rocketmq_client.log",
    "consumer": "rocketmq_client.log",
}
