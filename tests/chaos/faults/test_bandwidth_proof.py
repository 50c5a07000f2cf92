"""A bandwidth limit proves itself at a real Toxiproxy and on the virtual clock; one that is not there never does."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import tenacity
from pyspark.sql import SparkSession

from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.actors.namesrv.server import NameServer
from nemesrv.chaos.checks.spark.judge import check_run
from nemesrv.chaos.experiment.virtual.network import MemoryLinkFaults
from nemesrv.chaos.faults.link_faults import Bandwidth, Latency, LinkState, Stream, combine
from nemesrv.chaos.faults.measuring import BandwidthProofs, MeasuringThread
from nemesrv.chaos.faults.ports import PortHolder
from nemesrv.chaos.faults.toxiproxy import Toxiproxy
from nemesrv.chaos.faults.toxiproxy_links import LinkFaults
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.chaos.scenarios.model import Scenario
from nemesrv.chaos.topology import Link
from nemesrv.chaos.verdict import Validity
from nemesrv.remoting.node.clock import RealClock
from nemesrv.remoting.node.network import Address, TcpNetwork
from nemesrv.remoting.node.node import NodeContext

from .sockets import Rows

SCALE = 10.0
LINK, GONE = Link("broker-a", "ns-0"), Link("broker-a", "ns-1")
STREAMS: tuple[Stream, ...] = ("both", "upstream", "downstream")


class WithoutToxics(LinkFaults):
    """Says that every fault is on and puts none on."""

    def _inject(self, link: Link, now: LinkState | None, wanted: LinkState) -> None: ...


@contextmanager
def name_server() -> Iterator[Address]:
    """A NameServer on a real socket, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def wait(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(timeout=10)

    context = NodeContext(name="ns-0", clock=RealClock.starting_now(), network=TcpNetwork(), rng=random.Random(1))
    server = NameServer(context, NamesrvConfig(), listen=Address("127.0.0.1", 0))
    try:
        address = wait(server.listen())
        wait(server.start())
        yield address
        wait(server.stop())
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()


@contextmanager
def real_links(
    api: Toxiproxy, ports: PortHolder, rows: Rows, kind: type[LinkFaults] = LinkFaults
) -> Iterator[LinkFaults]:
    """LINK leads to a NameServer, GONE to nobody; ten RocketMQ seconds pass in one."""
    for name in api.proxies():  # of the test before
        api._call("delete", f"/proxies/{name}")
    with ExitStack() as stack:
        address, clock = stack.enter_context(name_server()), RealClock.starting_now(SCALE)
        faults = kind(api, clock, rows)
        faults.open({LINK: address, GONE: ports.take()}, ports)
        faults.observer = BandwidthProofs(stack.enter_context(MeasuringThread(clock, faults.way, rows)))
        stack.callback(faults.heal_all)
        yield faults


def verified(rows: Rows) -> list[dict[str, Any]]:
    return [row for row in rows if row["event"] == "verified"]


@tenacity.retry(
    retry=tenacity.retry_if_exception_type(ValueError),
    stop=tenacity.stop_after_delay(60),
    wait=tenacity.wait_fixed(0.05),
    reraise=True,
)
def soon_verified(rows: Rows) -> dict[str, Any]:
    (row,) = verified(rows)
    return row


@pytest.mark.toxiproxy
@pytest.mark.parametrize("stream", STREAMS)
def test_a_limit_of_toxiproxys_is_measured_on_its_own_link(api: Toxiproxy, ports: PortHolder, stream: Stream) -> None:
    rows = Rows()
    with real_links(api, ports, rows) as faults, faults.fault(Bandwidth(rate_kb_s=5, stream=stream), [LINK]) as fault:
        row = soon_verified(rows)
    value = row["value"]
    assert row["fault_id"] == fault
    assert (value["source"], value["target"], value["rate_kb_s"]) == ("broker-a", "ns-0", 5)
    assert value["stream"] == ("downstream" if stream == "downstream" else "upstream")
    assert value["bytes"] / value["took_ms"] == pytest.approx(value["kb_s"], rel=0.01)
    assert 1 < value["kb_s"] <= 6.25


@pytest.mark.toxiproxy
def test_a_limit_that_was_never_put_on_the_link_is_never_verified(api: Toxiproxy, ports: PortHolder) -> None:
    """Not by a slow link either: latency delays a short exchange as much as a long one."""
    rows = Rows()
    with real_links(api, ports, rows, WithoutToxics) as faults:
        LinkFaults._prepare(faults, LINK)
        LinkFaults._inject(faults, LINK, LinkState(), combine([Latency(latency_ms=200)], SCALE))
        fault_id = faults.begin(Bandwidth(rate_kb_s=5), [LINK])
        assert isinstance(faults.observer, BandwidthProofs)
        (proof,) = faults.observer._running[fault_id]
        assert isinstance(proof, Future)
        proof.result(timeout=60)
    assert verified(rows) == []


@pytest.mark.toxiproxy
def test_a_link_to_nobody_proves_nothing_and_holds_nothing_up(api: Toxiproxy, ports: PortHolder) -> None:
    rows = Rows()
    with real_links(api, ports, rows) as faults, faults.fault(Bandwidth(rate_kb_s=5), [GONE, LINK]):
        assert soon_verified(rows)["value"]["target"] == "ns-0"
    assert [row["phase"] for row in rows if row["event"] == "fault"] == ["start", "start", "end", "end"]


def narrow(stream: Stream) -> Scenario:
    links = ["producer-0 -> broker-a", "broker-a -> ns-0"]
    limit = {"at_s": 5, "do": "bandwidth", "links": links, "rate_kb_s": 20, "stream": stream}
    made = {
        "name": "narrow",
        "cluster": {"name_servers": 2, "brokers": 2},
        "workload": {"client_starts": 10},
        "timeline": [limit, {"at_s": 30, "do": "heal"}],
        "settle_s": 10,
        "checks": ["exercised"],
    }
    return parse(made, file="narrow.yaml")


@pytest.mark.parametrize("stream", STREAMS)
def test_on_virtual_time_a_limit_is_measured_to_the_percent(stream: Stream, tmp_path: Path) -> None:
    rows = read_rows(record_virtual(narrow(stream), 1, tmp_path / "run").path)
    found = [row["value"] for row in rows if row["event"] == "verified"]
    assert sorted((value["source"], value["target"]) for value in found) == [
        ("broker-a", "ns-0"),
        ("producer-0", "broker-a"),
    ]
    assert [value["kb_s"] for value in found] == pytest.approx([20, 20], rel=0.01)


@pytest.mark.spark
@pytest.mark.parametrize("applied", [True, False])
def test_a_run_whose_limit_was_never_applied_proves_nothing(
    applied: bool, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not applied:
        monkeypatch.setattr(MemoryLinkFaults, "_inject", lambda self, link, now, wanted: None)
    folder = record_virtual(narrow("both"), 1, tmp_path / "run")
    (verdict,) = check_run(folder.path, ["exercised"], spark)
    assert verdict.verdict is (Validity.VALID if applied else Validity.UNKNOWN)
    if applied:
        assert verdict.measured["by_fault"][0]["effects"] == {"verified": 2}
    else:
        assert verdict.examples[0].more["kind"] == "no row shows an effect of it"
