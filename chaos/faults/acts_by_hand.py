"""Acts by hand: requests as an operator or a stale process would send them to NameServers and brokers. The module
experiment/workloads/admin.py sends these requests. Each request of an act by hand has RocketMQ's own code and comes
from the node `admin`, whose links faults can cut."""

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field

from ...remoting.topics import DEFAULT_CLUSTER
from .fault import Action, Fault, Loss, by_do

Text = Annotated[str, Field(pattern=r"^[A-Za-z0-9%|_-]{1,127}$")]
Queues = Annotated[int, Field(ge=0, le=64)]
Perm = Literal[2, 4, 6]


class ByHand(Action):
    """Sends one request to each node that the timeline's entry names. The timeline does not wait for answers."""

    acts_on = "nodes"
    asks: ClassVar[tuple[str, ...]] = ("name_server",)
    """Kinds of nodes that understand the request."""
    codes: ClassVar[str]
    """RocketMQ's request code, for docs."""

    @property
    def about(self) -> str:
        named = [str(getattr(self, name)) for name in ("broker", "address", "topic") if getattr(self, name, None)]
        return " ".join([*named, "at"])


class Register(ByHand):
    """Registers a broker by hand, with the name, id and address of a broker in the scenario or with any others."""

    do: Literal["register"] = "register"
    codes = "REGISTER_BROKER (103)"
    broker: Text
    address: str
    """A broker of the scenario, or host:port."""
    broker_id: int = Field(0, ge=0, le=100)
    cluster_name: Text = DEFAULT_CLUSTER
    topics: dict[Text, Queues] | None = None
    """Topic to number of queues. None: the workload's topic and the one that has the broker's name."""
    perm: Perm = 6
    every_s: float | None = Field(None, ge=1, le=600)
    """Period of repeated registrations; None: once. The connections stay until unregistration or the end."""
    state_version: int = Field(0, ge=0, le=1_000_000)
    """`stateVersion` of the registration's dataVersion. A 5.x NameServer keeps the address with the greater one."""


class Unregister(ByHand):
    """Unregisters a broker by hand, and ends repeated registrations of this broker by hand."""

    do: Literal["unregister"] = "unregister"
    codes = "UNREGISTER_BROKER (104)"
    broker: Text
    address: str | None = None
    """None: the address of the broker of this name."""
    broker_id: int = Field(0, ge=0, le=100)
    cluster_name: Text = DEFAULT_CLUSTER


class UpdateTopic(ByHand):
    """mqadmin updateTopic: creates or changes the topic."""

    do: Literal["update_topic"] = "update_topic"
    asks = ("broker",)
    codes = "UPDATE_AND_CREATE_TOPIC (17)"
    topic: Text
    read_queues: int = Field(8, ge=1, le=64)
    write_queues: int = Field(8, ge=1, le=64)
    perm: Perm = 6
    order: bool = False


class DeleteTopic(ByHand):
    """mqadmin deleteTopic: deletes the topic at the named brokers and NameServers."""

    do: Literal["delete_topic"] = "delete_topic"
    asks = ("name_server", "broker")
    codes = "DELETE_TOPIC_IN_BROKER (215), DELETE_TOPIC_IN_NAMESRV (216)"
    topic: Text
    cluster_name: Text | None = None
    """At a NameServer: deletes only the rows of this cluster's brokers."""


class WipeWritePerm(ByHand):
    """mqadmin wipeWritePerm: takes a broker's write permission away at the named NameServers."""

    do: Literal["wipe_write_perm"] = "wipe_write_perm"
    codes = "WIPE_WRITE_PERM_OF_BROKER (205)"
    broker: Text


class AddWritePerm(ByHand):
    """mqadmin addWritePerm: gives a broker's write permission back at the named NameServers."""

    do: Literal["add_write_perm"] = "add_write_perm"
    codes = "ADD_WRITE_PERM_OF_BROKER (327)"
    broker: Text


class UpdateConfig(ByHand):
    """mqadmin updateNamesrvConfig or updateBrokerConfig: changes settings of running servers."""

    do: Literal["update_config"] = "update_config"
    asks = ("name_server", "broker")
    codes = "UPDATE_NAMESRV_CONFIG (318), UPDATE_BROKER_CONFIG (25)"
    settings: dict[Text, bool | int | float | str] = Field(min_length=1)

    @property
    def about(self) -> str:
        return f"{', '.join(f'{name}={value}' for name, value in self.settings.items())} at"


class Switch(ByHand):
    """Makes a slave the master of its broker name. The old master's process must have ended."""

    do: Literal["switch"] = "switch"
    asks = ("slave",)
    codes = "UPDATE_BROKER_CONFIG (25) with brokerRole and brokerId"


AnyByHand = Register | Unregister | UpdateTopic | DeleteTopic | WipeWritePerm | AddWritePerm | UpdateConfig | Switch
BY_HAND: dict[str, type[ByHand]] = by_do(*get_args(AnyByHand))


class DoneByHand(Fault):
    """The effect of an act by hand on a broker's entry in a NameServer's table. From an act by hand until the broker's
    next registration, the broker's entry counts as unknown."""

    title = "by hand"
    injection = "by_hand"
    shows_in_rows = False
    looks_like = Loss.OTHER

    @property
    def words(self) -> str:
        return f"{self.do.replace('_', ' ')} by hand"


class OldAddress(DoneByHand):
    """The effect of a broker's change of address on a client that still has the broker's old address."""

    title = "at its old address"
    injection = "old_address"
    looks_like = Loss.CLOSED

    @property
    def words(self) -> str:
        return "told of an old address"


class WrongClock(DoneByHand):
    """The effect of a NameServer's wrong wall clock on a broker's entry in the NameServer's table."""

    title = "wrong time"
    injection = "clock"

    @property
    def words(self) -> str:
        return self.do.replace("_", " ")


class FullDisk(DoneByHand):
    """The effect of a broker's full disk on a producer: its sends to the broker are refused."""

    title = "full"
    injection = "full_disk"

    @property
    def words(self) -> str:
        return "told that the disk is full"
