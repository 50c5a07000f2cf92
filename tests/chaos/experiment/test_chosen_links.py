"""The links to the NameServers that clients sit on as an action begins."""

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import Any

from nemesrv.chaos.experiment.actions import Actions
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.topology import Link
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.recording import ignore

NS_0, NS_1 = Address("10.0.1.1", 9876), Address("10.0.1.2", 9876)


class Sitting:
    """Clients that say where they sit."""

    def __init__(self, chosen: Mapping[str, Address | None], active: Collection[str]) -> None:
        self._chosen, self.active = chosen, active

    def call(self, name: str, method: str) -> Any:
        assert method == "chosen_name_server"
        return self._chosen[name]


def cut(chosen: Mapping[str, Address | None], *but: str) -> set[Link]:
    document = {
        "cluster": {"name_servers": 2},
        "workload": {"producers": 2, "consumers": 1},
        "timeline": [{"at_s": 0, "do": "cut", "links": ["clients <-> chosen"]}],
        "checks": ["routes_are_true"],
    }
    scenario = parse(document, file="chosen.yaml")
    nodes: Any = Sitting(chosen, but)
    actions = Actions(
        scenario=scenario,
        nodes=nodes,
        links=nodes,
        processes=nodes,
        record=ignore,
        advertised={"ns-0": NS_0, "ns-1": NS_1},
        now_s=float,
        phase=lambda *_: None,
        or_not_done=lambda *_: nullcontext(),
    )
    found = actions._chosen_links(scenario.timeline[0])
    return {*found}


def test_each_client_that_can_be_asked_and_has_chosen_loses_that_one() -> None:
    chosen = {"producer-0": NS_0, "producer-1": None, "consumer-0": NS_1}
    assert cut(chosen) == {Link("producer-0", "ns-0"), Link("consumer-0", "ns-1")}
    assert cut(chosen, "consumer-0") == {Link("producer-0", "ns-0")}


def test_an_entry_of_a_clients_list_that_is_no_name_server_of_the_run_has_no_link() -> None:
    """Random scenario 90463."""
    nobody = Address("10.9.9.9", 9876)
    assert cut({"producer-0": nobody, "producer-1": None, "consumer-0": NS_1}) == {Link("consumer-0", "ns-1")}
