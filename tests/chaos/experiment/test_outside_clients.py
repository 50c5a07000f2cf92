"""The fronts of a client under test: what it is told, what it meets while its servers are lost, and its rows."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from nemesrv.chaos.experiment import outside_clients
from nemesrv.chaos.experiment.outside_clients import ClientNode, ClientUnderTest, OutsideClients, Servers
from nemesrv.chaos.fronts.look_ups import Rules
from nemesrv.chaos.history.files import read_raw
from nemesrv.chaos.history.recorder import RecorderSpec
from nemesrv.chaos.oracle.client_profiles import PROFILES
from nemesrv.chaos.topology import NodeKind
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address
from tests.chaos.faults.sockets import dial, is_refused, read_exactly
from tests.chaos.fronts.world import request, response

ADVERTISED = {name: Address("10.0.0.1", 9000 + index) for index, name in enumerate(("ns-0", "ns-1", "broker-a"))}
ROUTE = b'{"brokerDatas":[{"brokerAddrs":{0:"10.0.0.1:9002"},"brokerName":"broker-a"}],"queueDatas":[]}'


class Server:
    """Stands where a proxy would: it answers every request with the route."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = Address(*self._listener.getsockname())
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(taken,), daemon=True).start()

    def _answer(self, taken: socket.socket) -> None:
        opaque = 0
        with taken:
            while taken.recv(65_536):
                opaque += 1
                taken.sendall(response(opaque, body=ROUTE))

    def close(self) -> None:
        with suppress(OSError):  # it is closed already
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


class World:
    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, RealClock.starting_now()
        self.recorded: list[dict[str, Any]] = []
        self.outside = OutsideClients()
        self.servers = {name: Server() for name in ADVERTISED}
        self.client = ClientUnderTest(
            name="go",
            profile=PROFILES["go"],
            servers=Servers(
                name_servers={name: at for name, at in ADVERTISED.items() if name.startswith("ns")},
                brokers={"broker-a": ADVERTISED["broker-a"]},
                dials={ADVERTISED[name]: server.address for name, server in self.servers.items()},
                host="127.0.0.2",
            ),
            clock=self.clock,
            record=self.record,
            spec=self.spec,
        )
        self.outside.add(self.client)
        self.addresses = [Address.parse(one) for one in self.client.name_servers]

    def record(self, event: str, /, **fields: Any) -> None:
        self.recorded.append({"event": event, **fields})

    def spec(self, node: str, kind: NodeKind) -> RecorderSpec:
        return RecorderSpec.for_run(self.folder, node, str(kind), 0, self.clock)

    def fault(self, fault: str, phase: str, source: str, target: str | None = None) -> None:
        fields = {"fault": fault, "phase": phase, "fault_id": f"{fault}-1", "source": source, "target": target}
        self.outside.heard("fault", fields)

    def look_up(self, server: int = 0) -> bytes:
        """The answer's last bytes."""
        with dial(self.addresses[server]) as here:
            here.sendall(request(105, 1, topic="orders"))
            return read_exactly(here, int.from_bytes(read_exactly(here, 4), "big"))

    def rows(self) -> list[dict[str, Any]]:
        """What was recorded of the client, once it is closed."""
        rows = [row for path in self.folder.rglob("*.jsonl") for row in read_raw(path) if row is not None]
        return sorted(rows, key=lambda row: row["time_ms"])


@contextmanager
def world(folder: Path) -> Iterator[World]:
    made = World(folder)
    try:
        yield made
    finally:
        made.outside.close()
        for server in made.servers.values():
            server.close()


def test_a_client_is_told_its_own_addresses_and_the_history_everybody_s(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        answer = here.look_up()
        assert here.client.brokers["broker-a"].encode() in answer
        assert b"10.0.0.1:9002" not in answer
        dial(Address.parse(here.client.brokers["broker-a"]).vip_channel).close()
        assert here.client.name_server_list == ";".join(map(str, here.addresses))
        assert {each.host for each in here.addresses} == {"127.0.0.2"}
    rows = here.rows()
    [told] = [row["value"] for row in rows if row["event"] == "route_answer"]
    assert told["brokers"] == {"broker-a": {"0": "10.0.0.1:9002"}}
    chosen = [row["name_server"] for row in rows if row["event"] == "name_server_chosen"]
    assert chosen == ["10.0.0.1:9000"]
    [node] = [row for row in here.recorded if row["event"] == "node"]
    about = {"kind": "producer", "implementation": "go", "client_profile": "go", "dialler": "go"}
    assert (node["source"], node["value"]) == ("go", about)
    assert rows[0]["event"] == "started"
    assert {(row["node"], row["role"]) for row in rows} == {("go", "producer")}


@pytest.mark.parametrize("since_ms", [0.1, 1234.567891234567, 98_765.43210987])
def test_what_was_seen_for_a_moment_only_is_recorded_all_the_same(tmp_path: Path, since_ms: float) -> None:
    noted: list[NodeKind] = []
    node = ClientNode(
        rules=Rules(),
        name_servers={"ns-0": "10.0.0.1:9000"},
        brokers={},
        since_ms=since_ms,
        note=noted.append,
        spec=lambda kind: RecorderSpec.for_run(tmp_path, "go", str(kind), 0, RealClock.starting_now()),
    )
    node.end(since_ms + 1, stopped=True)
    assert noted == [NodeKind.PRODUCER]
    rows = [row for path in tmp_path.rglob("*.jsonl") for row in read_raw(path) if row is not None]
    assert [row["event"] for row in rows] == ["started", "stopped"]


def unanswered(address: Address) -> bool:
    with socket.socket() as dialler:
        dialler.settimeout(0.3)
        try:
            dialler.connect(address)
        except TimeoutError:
            return True
    return False


@pytest.mark.parametrize(
    ("fault", "source", "target", "is_met"),
    [
        ("kill", "ns-0", None, is_refused),
        ("stop", "ns-0", None, is_refused),
        ("cut", "go", "ns-0", is_refused),
        ("syn_drop", "go", "ns-0", unanswered),
    ],
)
def test_a_front_does_what_the_proxy_behind_it_cannot(
    tmp_path: Path, fault: str, source: str, target: str | None, is_met: Callable[[Address], bool]
) -> None:
    with world(tmp_path) as here:
        here.look_up()
        here.fault(fault, "start", source, target)
        assert is_met(here.addresses[0])
        assert not is_met(here.addresses[1])
        here.fault(fault, "end", source, target)
        here.look_up()


def test_faults_of_others_and_what_the_proxy_does_itself_change_no_front(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.fault("pause", "start", "ns-0")
        here.fault("cut", "start", "producer-0", "ns-0")
        here.fault("black_hole", "start", "go", "ns-0")
        here.look_up()


def test_two_faults_end_with_the_later_of_them(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.fault("cut", "start", "go", "ns-0")
        here.fault("kill", "start", "ns-0")
        here.fault("cut", "end", "go", "ns-0")
        assert is_refused(here.addresses[0])
        here.fault("kill", "end", "ns-0")
        here.look_up()


def test_where_a_proxy_is_elsewhere_new_dials_go_there(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        other = Server()
        here.servers["ns-0"].close()
        here.outside.redial("go", {ADVERTISED["ns-0"]: other.address})
        here.look_up()
        other.close()


def test_nothing_is_recorded_of_a_client_that_makes_no_connection(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        assert here.client.name_servers
    assert here.recorded == []
    assert not list(tmp_path.rglob("*.jsonl"))


def test_on_a_machine_as_late_as_a_call_waits_nothing_is_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside_clients, "PATIENT_MS", -1_000.0)  # so that every machine is, though a timer fires early
    with world(tmp_path) as here:
        here.look_up()
        for attempt in Retrying(stop=stop_after_delay(20), wait=wait_fixed(0.05), reraise=True):
            with attempt:
                assert any("s late, as long as a call waits" in str(row["value"]) for row in here.recorded)


def chosen(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name_server"] for row in rows if row["event"] == "name_server_chosen"]


def test_who_starts_while_a_name_server_is_dead_is_taken_to_have_tried_it(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.fault("kill", "start", "ns-0")
        here.look_up(1)
    assert chosen(here.rows()) == ["10.0.0.1:9000", "10.0.0.1:9001"]


def test_who_starts_while_its_link_is_cut_is_taken_to_have_tried_it_and_afterwards_not(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.fault("cut", "start", "go", "ns-0")
        here.fault("cut", "end", "go", "ns-0")
        here.look_up(1)
    assert chosen(here.rows()) == ["10.0.0.1:9000", "10.0.0.1:9001"], "it may have been dialled a moment ago"


def test_who_starts_with_all_name_servers_there_and_begins_elsewhere_has_tried_nobody(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        here.look_up(1)
    assert chosen(here.rows()) == ["10.0.0.1:9001"]


def test_how_late_the_machine_was_before_a_client_was_seen_is_in_its_rows(tmp_path: Path) -> None:
    with world(tmp_path) as here:
        for attempt in Retrying(stop=stop_after_delay(20), wait=wait_fixed(0.05), reraise=True):
            with attempt:
                assert here.client._lags
        here.look_up()
    lags = [row["time_ms"] for row in here.rows() if row["event"] == "timer_lag"]
    [started_ms] = [row["time_ms"] for row in here.rows() if row["event"] == "started"]
    assert min(lags) < started_ms
