"""Faults of processes over a cluster that only takes notes: rows, order, and what is refused."""

from collections.abc import Callable

import pytest

from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.faults.process_faults import Kill, Pause, ProcessFault, Stop
from nemesrv.chaos.faults.processes import ProcessFaults

from .sockets import Rows


class Notes:
    """A cluster that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fails_at = ""

    def _act(self, verb: str, name: str, on_effect: Callable[[], None] | None) -> float:
        self.asked.append((verb, name))
        if verb == self.fails_at:
            raise HarnessError(f"cannot {verb}")
        if on_effect is not None:
            on_effect()
        return 0.0

    def kill(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        return self._act("kill", name, on_effect)

    def stop(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        return self._act("stop", name, on_effect)

    def pause(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        return self._act("pause", name, on_effect)

    def resume(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        return self._act("resume", name, on_effect)

    def restart(self, name: str, *, on_effect: Callable[[], None] | None = None) -> float:
        return self._act("restart", name, on_effect)


@pytest.fixture
def rows() -> Rows:
    return Rows()


@pytest.fixture
def cluster() -> Notes:
    return Notes()


@pytest.fixture
def faults(cluster: Notes, rows: Rows) -> ProcessFaults:
    return ProcessFaults(cluster, rows)


def test_a_fault_has_a_row_when_it_begins_and_one_of_the_same_id_when_it_ends(faults: ProcessFaults, rows: Rows):
    fault_id = faults.begin(Kill(), "broker-a")
    faults.restart("broker-a")
    both = {"event": "fault", "fault_id": fault_id, "fault": "kill", "injection": "sigkill"}
    both |= {"source": "broker-a", "target": None}
    gone = {"event": "gone", "fault_id": fault_id, "source": "broker-a"}
    assert rows == [{**both, "phase": "start"}, gone, {**both, "phase": "end"}]


@pytest.mark.parametrize(("fault", "injection"), [(Kill(), "sigkill"), (Stop(), "sigterm"), (Pause(), "sigstop")])
def test_a_heal_of_everything_undoes_the_fault(faults: ProcessFaults, rows: Rows, fault: ProcessFault, injection: str):
    faults.begin(fault, "ns-0")
    faults.heal_all()
    assert faults.active == {}
    assert [(row["injection"], row["phase"]) for row in rows if row["event"] == "fault"] == [
        (injection, "start"),
        (injection, "end"),
    ]


def test_everything_is_healed_in_the_order_in_which_it_began(cluster: Notes, faults: ProcessFaults):
    faults.begin(Pause(), "broker-b")
    faults.begin(Kill(), "broker-a")
    faults.begin(Stop(), "ns-0")
    faults.heal_all()
    assert cluster.asked[3:] == [("resume", "broker-b"), ("restart", "broker-a"), ("restart", "ns-0")]


def test_restarting_a_node_that_runs_is_a_stop_and_its_end(faults: ProcessFaults, rows: Rows):
    faults.restart("broker-a")
    assert rows.faults() == [("stop", "broker-a", None, "start"), ("stop", "broker-a", None, "end")]


def test_a_fault_that_did_not_take_effect_has_no_row(cluster: Notes, faults: ProcessFaults, rows: Rows):
    cluster.fails_at = "pause"
    with pytest.raises(HarnessError, match="cannot pause"):
        faults.begin(Pause(), "broker-a")
    assert (rows, faults.active) == ([], {})


def test_a_node_under_one_fault_is_not_hit_by_another_nor_ended_by_the_wrong_call(faults: ProcessFaults):
    faults.begin(Pause(), "broker-a")
    with pytest.raises(HarnessError, match="broker-a cannot be hit by kill: it is paused already"):
        faults.begin(Kill(), "broker-a")
    with pytest.raises(HarnessError, match="broker-a is paused, and not killed or without its port or stopped"):
        faults.restart("broker-a")
    with pytest.raises(HarnessError, match="ns-0 is under no fault, and not paused"):
        faults.resume("ns-0")


def test_a_heal_that_fails_keeps_no_other_from_happening(cluster: Notes, faults: ProcessFaults):
    faults.begin(Kill(), "broker-a")
    faults.begin(Pause(), "broker-b")
    cluster.fails_at = "restart"
    with pytest.raises(HarnessError, match="cannot restart"):
        faults.heal_all()
    assert faults.active == {"broker-a": Kill()}
