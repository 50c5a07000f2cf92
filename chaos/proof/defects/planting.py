"""A planted defect is one function: its name is the defect's name, its docstring says what is wrong, and its decorators
name nodes, scenario and checks.

    @planted(NS_0, "broker-partition", caught_by="routes_are_true")
    @may_find("answers_are_true registrations_are_kept")
    def name_server_never_expires(server: NameServer) -> None:
        \"""a NameServer keeps brokers that have gone silent\"""     (the first paragraph; how it does it may follow)
        replace_part(server, "_expire_brokers", does_nothing)

The example plants the defect `name-server-never-expires`. chaos/defects.py has the helpers with which most defects
change their node. A broker's defect is planted when the broker makes its parts, as its port opens
(`in_its_parts`), but with `@from_its_making` when the broker itself is made.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ....actors.namesrv.server import NameServer
from ....actors.namesrv.tables import Registered, Registration
from ....clients.client_instance import MQClientInstance
from ....remoting.node.node import Node
from ...defects import around, in_its_parts
from ...scenarios.defect import CLIENTS, Defect
from ...topology import NodeKind

Plant = TypeVar("Plant", bound=Callable[[Any], None])


class Where(NamedTuple):
    """The nodes of a defect: all nodes of these kinds, or the nodes of these names."""

    kinds: tuple[NodeKind, ...]
    nodes: tuple[str, ...] = ()


NAME_SERVERS = Where((NodeKind.NAME_SERVER,))
NS_0 = Where((NodeKind.NAME_SERVER,), ("ns-0",))
BROKERS = Where((NodeKind.BROKER,))
BROKER_A = Where((NodeKind.BROKER,), ("broker-a",))
SLAVE_OF_A = Where((NodeKind.SLAVE,), ("broker-a/1",))
PRODUCERS = Where((NodeKind.PRODUCER,))
PRODUCER_0 = Where((NodeKind.PRODUCER,), ("producer-0",))
CONSUMERS = Where((NodeKind.CONSUMER,))
CONSUMER_0 = Where((NodeKind.CONSUMER,), ("consumer-0",))
LASTING_CLIENTS = Where((NodeKind.PRODUCER, NodeKind.CONSUMER))
EVERY_CLIENT = Where(CLIENTS)
"""With those that the prober starts for one look-up."""


class Planted(list[Defect]):
    """The defects of one module, in their order."""

    def __init__(self, *, of_apache: bool = False) -> None:
        super().__init__()
        self._of_apache = of_apache

    def __call__(
        self, where: Where, scenario: str = "", *, caught_by: str = "", name: str = "", what: str = ""
    ) -> Callable[[Plant], Plant]:
        """Adds the defect that the function plants. Names of checks are separated by spaces. `name` and `what` take the
        place of the function's name and docstring."""

        def add(plant: Plant) -> Plant:
            said = what or (inspect.getdoc(plant) or "").split("\n\n")[0]
            self.append(
                Defect(
                    name=name or plant.__name__.replace("_", "-"),
                    what=" ".join(said.split()),
                    kinds=where.kinds,
                    nodes=where.nodes,
                    scenario=scenario,
                    caught_by=frozenset(caught_by.split()),
                    also=frozenset(vars(plant).get("also", "").split()) - {*caught_by.split()},
                    plant=in_its_parts(plant) if self._is_of_parts(where, plant) else plant,
                    of_apache=self._of_apache,
                )
            )
            return plant

        return add

    def _is_of_parts(self, where: Where, plant: Callable[[Any], None]) -> bool:
        made_early = self._of_apache or "from_its_making" in vars(plant)
        return not made_early and {*where.kinds} <= {NodeKind.BROKER, NodeKind.SLAVE}


def from_its_making(plant: Plant) -> Plant:
    """Plant the defect when the broker is made: for a method of the store's recovery, or one that parts get."""
    vars(plant)["from_its_making"] = True
    return plant


def may_find(also: str) -> Callable[[Plant], Plant]:
    """Name the checks that may find the defect, besides the checks that must find it."""

    def note(plant: Plant) -> Plant:
        vars(plant)["also"] = also
        return plant

    return note


def instance_of(node: Node) -> MQClientInstance:
    """Return the client instance of the node; the node is a producer or a consumer."""
    instance = getattr(node, "instance", None)
    assert isinstance(instance, MQClientInstance)
    return instance


def registering(server: NameServer, change: Callable[[Registration], Registration | None]) -> None:
    """Change each registration before the NameServer processes it. If the change returns None, the NameServer
    acknowledges the registration and ignores it."""

    @around(server.table, "register")
    def register_changed(register: Any, registration: Registration, *, now_ms: int) -> Any:
        changed = change(registration)
        return Registered() if changed is None else register(changed, now_ms=now_ms)
