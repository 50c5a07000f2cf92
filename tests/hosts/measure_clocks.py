"""In a driver on the bench: every host's CLOCK_MONOTONIC, asked for SECONDS as a run asks; a JSON object on stdout.

python measure_clocks.py HEAD SECONDS  ─►  {"c": [[offset_ms, bound_ms], …], …}
"""

import json
import sys
import threading
import time
from collections import defaultdict
from typing import Any

from nemesrv.actors.hosts import RemoteHost
from nemesrv.actors.joined_ray import JoinedRay
from nemesrv.chaos.experiment.hosts.clock_probe import HostClocks
from nemesrv.chaos.history.host_clocks import HostClock, reading_of


def main() -> None:
    head, seconds = sys.argv[1], float(sys.argv[2])
    readings: dict[str, list[Any]] = defaultdict(list)
    recording = threading.Lock()

    def record(_event: str, /, **fields: Any) -> None:
        with recording:
            readings[fields["source"]].append(reading_of(fields["value"]))

    def now_ms() -> float:
        return time.monotonic_ns() / 1e6

    def shown_by(host: RemoteHost) -> Any:
        return lambda: host.ask("monotonic_ns") / 1e6

    with JoinedRay(head) as joined:
        asks = {host.name: shown_by(host) for host in joined.hosts}
        began_ms = now_ms()
        with HostClocks(asks, now_ms, record):
            time.sleep(seconds)
        ended_ms = now_ms()
    found = {}
    for host, of in readings.items():
        clock = HostClock.of(of)
        worst_ms = max(bound.bound_ms for bound in clock.bounds(began_ms, ended_ms))
        single = [[reading.offset_ms, reading.bound_ms] for reading in of]
        known = [[one.offset_ms, one.bound_ms] for stretch in clock.stretches for one in stretch]
        found[host] = {"readings": single, "known": known, "worst_ms": worst_ms, "jumps": len(clock.jumps)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
