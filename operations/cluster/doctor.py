"""`nemesrv doctor TOPIC -n …`: asks, finds the causes, tells them. Read-only.

Exit status: 0 every NameServer routes the topic to the same brokers and nothing is wrong with the route, 1 a certain
cause, 3 likely ones only, 4 no NameServer answered.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
from collections.abc import Sequence

from ...chaos.errors import HarnessError
from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from .causes import Cause, causes_of, is_routed_everywhere
from .reading import Reader
from .seen import Seen

HEALTHY, CERTAIN, LIKELY = 0, 1, 3


def look(
    topic: str, name_servers: Sequence[Address], *, brokers: Sequence[Address] = (), group: str | None = None
) -> Seen:
    """What everybody says now. HarnessError when no NameServer gives an answer."""

    async def see() -> Seen:
        context = on_this_machine("doctor")
        async with Reader(context, name_servers) as reader:
            return await reader.see(topic, brokers=brokers, group=group)

    seen = asyncio.run(see())
    if not seen.answering:
        said = "; ".join(f"{server.address}: {server.why}" for server in seen.name_servers)
        raise HarnessError(f"no NameServer gives an answer: {said}")
    return seen


def status_of(seen: Seen, causes: Sequence[Cause]) -> int:
    """The exit status. What only some clients may meet (the dialect) makes no topic ill that is routed everywhere."""
    if any(cause.certain for cause in causes):
        return CERTAIN
    if is_routed_everywhere(seen) and all(cause.name.startswith("dialect") for cause in causes):
        return HEALTHY
    return LIKELY


def lines_of(seen: Seen, causes: Sequence[Cause]) -> list[str]:
    """For a person: what each NameServer says, then the causes in their order."""
    lines = []
    for server in seen.name_servers:
        if server.why is not None:
            said = f"no answer: {server.why}"
        elif server.route is not None:
            queues = ", ".join(
                f"{row.broker_name} {row.read_queue_nums}/{row.write_queue_nums} perm {row.perm}"
                for row in sorted(server.route.queue_datas, key=lambda row: row.broker_name)
            )
            said = f"routes it to {queues}"
        else:
            held = f"{len(server.brokers)} broker{'' if len(server.brokers) == 1 else 's'}"
            remark = (server.remark or "no remark").splitlines()[0]
            said = f"code {server.code} ({remark}); it holds {held}"
        lines.append(f"{server.address}  {said}")
    if is_routed_everywhere(seen) and not any(cause.certain for cause in causes):
        lines.append(
            "every NameServer routes it to the same brokers; a client without it has another list or namespace"
        )
    for number, cause in enumerate(causes, 1):
        sure = "" if cause.certain else "likely: "
        lines += [f"{number}. {sure}{cause.sentence}", f"   {cause.then}  [{cause.name}]"]
    return lines


def as_json(seen: Seen, causes: Sequence[Cause]) -> str:
    """One object: topic, what each NameServer answered, and the causes in order."""
    answered = [
        {
            "name_server": server.address,
            "code": server.code,
            "why": server.why,
            "brokers": sorted(server.brokers),
            "routed": sorted(server.routed),
        }
        for server in seen.name_servers
    ]
    found = [dataclasses.asdict(cause) for cause in causes]
    return json.dumps({"topic": seen.topic, "name_servers": answered, "causes": found}, ensure_ascii=False)


__all__ = ["as_json", "causes_of", "lines_of", "look", "status_of"]
