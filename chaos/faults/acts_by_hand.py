"""What an operator, or a stale process, asks of NameServers and brokers by hand; experiment/workloads/admin.py asks.

Each goes over the wire with RocketMQ's own request code, from a node of its own (`admin`) over links of its own, so
that it can be cut from a NameServer as anybody else.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from .fault import Action, Fault, Loss, by_do

Text = Annotated[str, Field(pattern=r"^[A-Za-z0-9%|_-]{1,127}$")]
Queues = Annotated[int, Field(ge=0, le=64)]
Perm = Literal[2, 4, 6]


class ByHand(Action):
    """One request of each node that the entry names; the timeline does not wait for the answers."""

    acts_on = "nodes"
    asks: ClassVar[tuple[str, ...]] = ("name_server",)
    """The kinds of nodes that understand it."""
    codes: ClassVar[str]
    """RocketMQ's own request code, for docs."""

    @property
    def about(self) -> str:
        named = [str(getattr(self, name)) for name in ("broker", "address", "topic") if getattr(self, name, None)]
        return " ".join([*named, "at"])


class Register(ByHand):
    """Somebody registers a broker: with a foreign name, with the name of one that lives elsewhere, or in its place."""

    do: Literal["register"] = "register"
    codes = "REGISTER_BROKER (103)"
    broker: Text
    address: str
    """Of a broker of the scenario, or host:port."""
    broker_id: int = Field(0, ge=0, le=100)
    cluster_name: Text = "DefaultCluster"
    topics: dict[Text, Queues] | None = None
    """Topic to queues; None: the workload's, and the one that every broker has by its own name."""
    perm: Perm = 6
    every_s: float | None = Field(None, ge=1, le=600)
    """As a process that goes on registering; None: once. Its connections stay until it is unregistered, or the end."""
    state_version: int = Field(0, ge=0, le=1_000_000)
    """Of its dataVersion: a 5.x NameServer keeps a live address with the greater one."""


class Unregister(ByHand):
    """Somebody takes a broker out. What it was registered by hand for ends with it."""

    do: Literal["unregister"] = "unregister"
    codes = "UNREGISTER_BROKER (104)"
    broker: Text
    address: str | None = None
    """None: that of the broker of this name."""
    broker_id: int = Field(0, ge=0, le=100)
    cluster_name: Text = "DefaultCluster"


class UpdateTopic(ByHand):
    """mqadmin updateTopic: the topic is made, or changed."""

    do: Literal["update_topic"] = "update_topic"
    asks = ("broker",)
    codes = "UPDATE_AND_CREATE_TOPIC (17)"
    topic: Text
    read_queues: int = Field(8, ge=1, le=64)
    write_queues: int = Field(8, ge=1, le=64)
    perm: Perm = 6
    order: bool = False


class DeleteTopic(ByHand):
    """mqadmin deleteTopic, of the brokers and NameServers that are named."""

    do: Literal["delete_topic"] = "delete_topic"
    asks = ("name_server", "broker")
    codes = "DELETE_TOPIC_IN_BROKER (215), DELETE_TOPIC_IN_NAMESRV (216)"
    topic: Text
    cluster_name: Text | None = None
    """Of a NameServer: only the rows of this cluster's brokers."""


class WipeWritePerm(ByHand):
    """mqadmin wipeWritePerm, at the NameServers that are named."""

    do: Literal["wipe_write_perm"] = "wipe_write_perm"
    codes = "WIPE_WRITE_PERM_OF_BROKER (205)"
    broker: Text


class AddWritePerm(ByHand):
    """mqadmin addWritePerm, at the NameServers that are named."""

    do: Literal["add_write_perm"] = "add_write_perm"
    codes = "ADD_WRITE_PERM_OF_BROKER (327)"
    broker: Text


class UpdateConfig(ByHand):
    """mqadmin updateNamesrvConfig or updateBrokerConfig."""

    do: Literal["update_config"] = "update_config"
    asks = ("name_server", "broker")
    codes = "UPDATE_NAMESRV_CONFIG (318), UPDATE_BROKER_CONFIG (25)"
    settings: dict[Text, bool | int | float | str] = Field(min_length=1)

    @property
    def about(self) -> str:
        return f"{', '.join(f'{name}={value}' for name, value in self.settings.items())} at"


class Switch(ByHand):
    """A slave becomes the master of its name, which the one before must not be any more."""

    do: Literal["switch"] = "switch"
    asks = ("slave",)
    codes = "UPDATE_BROKER_CONFIG (25) with brokerRole and brokerId"


AnyByHand = Register | Unregister | UpdateTopic | DeleteTopic | WipeWritePerm | AddWritePerm | UpdateConfig | Switch
BY_HAND: dict[str, type[ByHand]] = by_do(*get_args(AnyByHand))


class DoneByHand(Fault):
    """What an act of somebody else's does to a broker's place in a NameServer's table, until the broker has had its
    next say: it is as if nobody knew what that table holds."""

    title = "by hand"
    injection = "by_hand"
    shows_in_rows = False
    looks_like = Loss.OTHER

    @property
    def words(self) -> str:
        return f"{self.do.replace('_', ' ')} by hand"


class OldAddress(DoneByHand):
    """What a broker that came back elsewhere is to a client that is told of its address of before."""

    title = "at its old address"
    injection = "old_address"
    looks_like = Loss.CLOSED

    @property
    def words(self) -> str:
        return "told of an old address"


class WrongClock(DoneByHand):
    """What a NameServer's wall clock, set wrongly, does to a broker's place in its table."""

    title = "wrong time"
    injection = "clock"

    @property
    def words(self) -> str:
        return self.do.replace("_", " ")
