"""Who has fronts of its own hears which servers it cannot reach, whole, whenever that changes or it was away."""

from nemesrv.actors.watch import ClusterError
from nemesrv.chaos.experiment.experiment import FaultNews


class Nodes:
    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, str]]] = []
        self.away: set[str] = set()

    def submit(self, node: str, method: str, meets: object) -> None:
        if node in self.away:
            raise ClusterError(f"{node} is paused")
        assert method == "faulted"
        assert isinstance(meets, dict)
        self.told.append((node, {server: str(dials) for server, dials in meets.items()}))


def fault(do: str, phase: str, source: str, target: str | None = None, number: int = 1) -> dict[str, object]:
    return {"fault": do, "phase": phase, "fault_id": f"{do}-{number}", "source": source, "target": target}


def test_a_server_that_is_gone_refuses_everybody_and_a_cut_link_its_own_dialler() -> None:
    nodes = Nodes()
    news = FaultNews(["producer-0", "consumer-0"], nodes.submit)
    news.heard("fault", fault("kill", "start", "broker-a"))
    news.heard("fault", fault("cut", "start", "consumer-0", "ns-1"))
    news.heard("fault", fault("kill", "end", "broker-a"))
    assert nodes.told == [
        ("producer-0", {"broker-a": "refused"}),
        ("consumer-0", {"broker-a": "refused"}),
        ("consumer-0", {"broker-a": "refused", "ns-1": "refused"}),
        ("producer-0", {}),
        ("consumer-0", {"ns-1": "refused"}),
    ]


def test_a_dropped_syn_is_worse_than_a_refusal_as_long_as_both_last() -> None:
    nodes = Nodes()
    news = FaultNews(["producer-0"], nodes.submit)
    news.heard("fault", fault("syn_drop", "start", "producer-0", "ns-0"))
    news.heard("fault", fault("kill", "start", "ns-0"))
    news.heard("fault", fault("syn_drop", "end", "producer-0", "ns-0"))
    assert [meets for _node, meets in nodes.told] == [{"ns-0": "dropped"}, {"ns-0": "dropped"}, {"ns-0": "refused"}]


def test_who_was_paused_or_gone_is_told_all_when_it_is_back() -> None:
    nodes = Nodes()
    news = FaultNews(["producer-0"], nodes.submit)
    nodes.away.add("producer-0")
    news.heard("fault", fault("pause", "start", "producer-0"))
    news.heard("fault", fault("kill", "start", "broker-a"))
    nodes.away.clear()
    news.heard("fault", fault("pause", "end", "producer-0"))
    assert nodes.told == [("producer-0", {"broker-a": "refused"})]


def test_what_no_front_has_to_do_is_told_nobody() -> None:
    nodes = Nodes()
    news = FaultNews(["producer-0"], nodes.submit)
    news.heard("fault", fault("black_hole", "start", "producer-0", "ns-0"))
    news.heard("phase", {"phase": "steady"})
    assert nodes.told == []
