"""What Prometheus reads of a watch."""

import asyncio
import urllib.request

from nemesrv.operations.cluster.looks import BrokerId, Look, NameServerLook
from nemesrv.operations.cluster.watch import Metrics
from nemesrv.operations.cluster.watcher import Watcher
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.this_machine import on_this_machine

NAMES = {
    *("nemesrv_name_server_up", "nemesrv_name_server_brokers", "nemesrv_name_server_topics"),
    *("nemesrv_problems", "nemesrv_problem_seconds", "nemesrv_looks_total", "nemesrv_requests"),
}


def read(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        return str(answer.read().decode())


def test_a_name_server_that_is_silent_and_a_broker_that_one_lacks_are_metrics_with_their_names() -> None:
    addresses = [Address("10.0.1.1", 9876), Address("10.0.1.2", 9876), Address("10.0.1.3", 9876)]

    async def look() -> str:
        watcher, metrics = Watcher(on_this_machine("w"), addresses), Metrics(0, "127.0.0.1")
        try:
            for at_s in (0.0, 60.0, 90.0):
                held = {BrokerId("broker-a", 0): "10.0.2.1:10911"}
                seen = Look(
                    at_s=at_s,
                    name_servers={
                        "10.0.1.1:9876": NameServerLook(brokers=held, topics=frozenset({"orders"})),
                        "10.0.1.2:9876": NameServerLook(brokers=held if not at_s else {}),
                        "10.0.1.3:9876": NameServerLook(why="connection refused"),
                    },
                )
                watcher.auditor.looked(seen)
                metrics.looked(seen, watcher)
            return await asyncio.to_thread(read, metrics.port)
        finally:
            metrics.close()
            await watcher.aclose()

    said = asyncio.run(look())
    assert 'nemesrv_name_server_up{name_server="10.0.1.3:9876"} 0.0' in said
    assert 'nemesrv_name_server_up{name_server="10.0.1.1:9876"} 1.0' in said
    assert 'nemesrv_name_server_topics{name_server="10.0.1.1:9876"} 1.0' in said
    assert 'nemesrv_problems{kind="name-server-silent"} 1.0' in said
    assert 'nemesrv_problem_seconds{about="10.0.1.3:9876",kind="name-server-silent"} 90.0' in said
    assert "nemesrv_looks_total 3.0" in said
    told = {line.partition("{")[0].split()[0] for line in said.splitlines() if not line.startswith("#")}
    assert told - {"nemesrv_looks_created"} == NAMES
