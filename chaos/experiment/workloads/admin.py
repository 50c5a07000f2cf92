"""Executes a timeline's acts by hand: commands of mqadmin, and registrations of brokers by a process that is no broker.

An act by hand sends its request to all named nodes at once, over the node `admin`'s own links. The node `admin` records
one `admin` row per named node, when the answer comes or the request is given up. A registration by hand keeps a
connection of its own to each NameServer, because NameServers identify brokers by their channels. A registration by hand
ends when it is unregistered, when the NameServer closes the channel, or when the node `admin` ends.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ....clients.admin import AdminClient
from ....remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from ....remoting.bodies.route import DataVersion, TopicConfig
from ....remoting.codes import LanguageCode, RequestCode
from ....remoting.command import RemotingCommand, success
from ....remoting.errors import ResponseError, RocketMQError
from ....remoting.headers.namesrv import RegisterBrokerRequestHeader, UnRegisterBrokerRequestHeader
from ....remoting.node.network import Address
from ....remoting.node.node import Node, NodeContext
from ....remoting.node.profile import Profile
from ....remoting.node.recording import ignore
from ....remoting.node.tasks import Tasks
from ....remoting.transport import RemotingClient

CALL_S = 5.0
"""How long an operator waits for an answer (mqadmin's own limit)."""

Act = Mapping[str, Any]
"""An entry of the timeline as data: `do` and its keys."""


@dataclass(frozen=True, slots=True)
class _Asked:
    node: str
    address: Address
    act_id: str


class AdminNode(Node):
    """The node that executes acts by hand when the harness calls it. `addresses` has the advertised address of every
    NameServer and broker, under the node's name."""

    def __init__(self, context: NodeContext, addresses: Mapping[str, Address], profile: Profile) -> None:
        self._context, self._addresses, self._profile = context, addresses, profile
        self._by_hand: dict[tuple[str, str, int], dict[Address, _Registration]] = {}
        self._tasks = Tasks()
        self._stopping = False

    async def stop(self) -> None:
        self._stopping = True
        await self.leave()

    async def leave(self) -> None:
        """Stop all registrations by hand and close their connections."""
        registrations = [one for of in self._by_hand.values() for one in of.values()]
        self._by_hand.clear()
        for one in registrations:
            one.end()
        await asyncio.gather(*(one.remoting.close() for one in registrations))

    async def act(self, act: Act, nodes: Sequence[str], act_id: str) -> bool:
        """Send the request to all of these nodes, and wait until each request is answered or given up. Returns whether
        each may have been done."""
        asked = [_Asked(node, self._addresses[node], act_id) for node in nodes]
        return all(await asyncio.gather(*(self._ask(act, one) for one in asked)))

    async def _ask(self, act: Act, asked: _Asked) -> bool:
        if act["do"] == "register":
            await self._register(act, asked)
            return True
        about: dict[str, Any] = {name: act[name] for name in ("topic",) if act.get(name)}
        about |= {"broker_name": act["broker"]} if act.get("broker") else {}
        if act["do"] == "unregister":
            address = self._address_of(act["address"] or act["broker"])
            about |= {"broker_id": act["broker_id"], "address": str(address)}
            registrations = self._by_hand.get((act["broker"], str(address), act["broker_id"]), {})
            registration = registrations.pop(asked.address, None)
            if registration is not None:
                registration.end()
            how = await self._noted(act, asked, about, lambda: self._unregister(act, address, asked.address))
            if registration is not None:
                await registration.remoting.close()
            return how != "fail"
        return await self._noted(act, asked, about, lambda: self._admin(act, asked)) != "fail"

    async def _noted(
        self, act: Act, asked: _Asked, about: Mapping[str, Any], ask: Callable[[], Awaitable[object]]
    ) -> str:
        """Send the request and record the act's row. Returns the row's type: ok, fail, or info if nobody knows."""
        began_s, code, kind, why = self._context.clock.monotonic_s(), 0, "ok", None
        try:
            await ask()
        except ResponseError as exc:
            code, kind, why = exc.code, "fail", str(exc)
        except RocketMQError as exc:
            code, kind, why = -1, "fail" if exc.definite else "info", str(exc)
        said = {key: value for key, value in act.items() if key not in ("do", "topic", "broker") and value is not None}
        self._context.record_ended(
            began_s,
            "admin",
            f=act["do"],
            type=kind,
            fault_id=asked.act_id,
            target=asked.node,
            code=None if code == -1 else code,
            value={**said, "why": why} if why else said,
            **about,
        )
        self._context.log.info("%s of %s: %s %s", act["do"], asked.node, kind, why or "")
        return kind

    async def _admin(self, act: Act, asked: _Asked) -> None:
        context = replace(self._context, record=ignore)
        is_broker, at = asked.node.startswith("broker"), asked.address
        async with AdminClient(context, (at,), profile=self._profile, timeout_s=CALL_S) as admin:
            match act["do"]:
                case "update_topic":
                    await admin.create_topic(
                        at,
                        act["topic"],
                        read_queue_nums=act["read_queues"],
                        write_queue_nums=act["write_queues"],
                        perm=act["perm"],
                        order=act["order"],
                    )
                case "delete_topic" if is_broker:
                    await admin.delete_topic_in_broker(at, act["topic"])
                case "delete_topic":
                    await admin.delete_topic_in_name_server(act["topic"], cluster=act["cluster_name"], name_server=at)
                case "wipe_write_perm":
                    await admin.wipe_write_perm(act["broker"], name_server=at)
                case "add_write_perm":
                    await admin.add_write_perm(act["broker"], name_server=at)
                case "switch":
                    await admin.update_broker_config(at, {"brokerRole": "ASYNC_MASTER", "brokerId": "0"})
                case "update_config":
                    if is_broker:
                        await admin.update_broker_config(at, act["settings"])
                    else:
                        await admin.update_name_server_config(act["settings"], name_server=at)

    # -- brokers that are none

    async def _register(self, act: Act, asked: _Asked) -> None:
        address = self._address_of(act["address"])
        key = act["broker"], str(address), act["broker_id"]
        registrations = self._by_hand.setdefault(key, {})
        one = registrations.get(asked.address)
        if one is None:
            one = registrations[asked.address] = _Registration(self, act, address, asked)
        else:  # the same process says something else
            one.act, one.asked = act, asked
            one.version = one.version.next(now_ms=self._context.clock.now_ms())
        await one.send()
        if act["every_s"] is not None and one.task is None:
            one.task = self._tasks.spawn(one.keep_registering())

    async def _unregister(self, act: Act, address: Address, target: Address) -> None:
        header = UnRegisterBrokerRequestHeader(
            broker_name=act["broker"],
            broker_addr=str(address),
            cluster_name=act["cluster_name"],
            broker_id=act["broker_id"],
        )
        remoting = self.remoting()
        try:
            request = RemotingCommand.request(RequestCode.UNREGISTER_BROKER, header)
            success(await remoting.invoke(target, request, timeout_s=CALL_S))
        finally:
            await remoting.close()

    def remoting(self, on_event: Callable[[str, Address, str], None] | None = None) -> RemotingClient:
        return RemotingClient(
            **self._context.seams,
            idle_s=1e6,  # a NameServer closes what is idle, not this end
            language=LanguageCode.JAVA,
            version=self._profile.version,
            on_event=on_event,
        )

    def _address_of(self, said: str) -> Address:
        return self._addresses.get(said) or Address.parse(said)


class _Registration:
    """One broker registered by hand at one NameServer: what it claims to be, and its channel."""

    def __init__(self, node: AdminNode, act: Act, address: Address, asked: _Asked) -> None:
        self.node, self.act, self.address, self.asked = node, act, address, asked
        self.remoting = node.remoting(self._closed)
        self.version = DataVersion(state_version=act["state_version"], timestamp=node._context.clock.now_ms())
        self.task: asyncio.Task[None] | None = None
        self.ended = False

    @property
    def about(self) -> dict[str, Any]:
        return {"broker_name": self.act["broker"], "broker_id": self.act["broker_id"], "address": str(self.address)}

    async def send(self) -> bool:
        return await self.node._noted(self.act, self.asked, self.about, self._send) == "ok"

    async def keep_registering(self) -> None:
        """Register at a fixed rate, as a broker does, and continue after a failed registration."""
        clock = self.node._context.clock
        due_s = clock.monotonic_s()
        while not self.ended:
            due_s += self.act["every_s"]
            await clock.sleep(max(0.0, due_s - clock.monotonic_s()))
            if not self.ended:
                await self.send()

    def end(self) -> None:
        """Stop registering. The connection stays open until the broker is unregistered by hand."""
        self.ended = True
        if self.task is not None:
            self.task.cancel()

    async def _send(self) -> None:
        act, profile = self.act, self.node._profile
        topics = tuple(
            TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues, perm=act["perm"])
            for topic, queues in act["topics"].items()
        )
        wrapper = TopicConfigSerializeWrapper.of(topics, self.version)
        body = RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=()).encode(
            compressed=False, version=profile.version
        )
        header = RegisterBrokerRequestHeader(
            broker_name=act["broker"],
            broker_addr=str(self.address),
            cluster_name=act["cluster_name"],
            ha_server_addr=str(Address(self.address.host, self.address.port + 1)),
            broker_id=act["broker_id"],
            enable_acting_master=False if profile is Profile.V5_X else None,
            body_crc32=zlib.crc32(body) & 0x7FFFFFFF,
        )
        request = RemotingCommand.request(RequestCode.REGISTER_BROKER, header, body)
        success(await self.remoting.invoke(self.asked.address, request, timeout_s=CALL_S))

    def _closed(self, event: str, _: Address, reason: str) -> None:
        """The NameServer drops what this channel registered; the next registration connects again."""
        if event == "close" and not self.node._stopping:
            self.node._context.record(
                "admin",
                f="closed",
                type="ok",
                fault_id=self.asked.act_id,
                target=self.asked.node,
                duration_ms=0.0,
                value={"why": reason},
                **self.about,
            )
