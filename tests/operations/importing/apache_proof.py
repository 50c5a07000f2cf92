"""The proof with Apache's own logs: `python -m tests.operations.importing.apache_proof --only crash-4 --out FOLDER`.

Each incident of apache_incidents.py is run with Apache's servers and clients (two minutes each; one that FOLDER has is
not run again), its logs are put as hosts would have left them, each with a clock of its own, and what the import says
is compared with what the run recorded: transitions, offsets, the fault named first, nothing wrong with certainty.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.scenarios.loading import parse
from nemesrv.operations.inferring.episodes import episodes_of
from nemesrv.operations.logs_to_rows.reconstruct import reconstruct
from tests.operations.made_logs import read_logs

from .apache_incidents import SCENARIOS
from .apache_run import cleaned
from .distortion import Distortion
from .entries import Cluster
from .proof import Compared, Truth, compare, table
from .recording import Incident
from .writing import HostClock, Source

RUN_LIMIT_S = 300
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
_FORMAT = "%Y-%m-%d %H:%M:%S"
_FAR_S = 7_200


def ran(name: str, folder: Path) -> Path:
    """The run folder; CalledProcessError where the run was not possible."""
    run = folder / "run"
    if not (run / "history").exists():
        folder.mkdir(parents=True, exist_ok=True)
        scenario = folder / "scenario.yaml"
        scenario.write_text(yaml.safe_dump(SCENARIOS[name], sort_keys=False))
        command = [sys.executable, "-m", "nemesrv.chaos", "run", str(scenario), "--out", str(run), "--quiet"]
        with (folder / "run.out").open("wb") as said:
            done = subprocess.run(command, stdout=said, stderr=said, timeout=RUN_LIMIT_S, check=False)
        if done.returncode == 4 or not (run / "history").exists():
            raise subprocess.CalledProcessError(done.returncode, command)
    return run


def compared(name: str, folder: Path) -> Compared:
    """One incident, whose run is there, imported."""
    logs = folder / "logs"
    truth = cleaned(folder / "run", logs)
    rows = [dict(_addressed(row, truth["hosts"])) for row in whole(read_rows(folder / "run"))]
    of = Cluster(folder / "run", rows)
    sources = list(_sources(logs, of))
    rng = random.Random(f"{name} clocks")
    shown = {node: HostClock(1000.0 * (0 if rng.random() < 0.3 else rng.randint(-_FAR_S, _FAR_S))) for node in of.kinds}
    for source in sources:
        path = logs / source.file
        path.write_text(_shifted(path.read_text(), shown[source.node].offset_ms))
    distorted = Distortion(shown, (float("-inf"), float("inf")))
    lines, files, *_ = read_logs([logs])
    imported = reconstruct(lines, files)
    inferred = episodes_of(imported.rows, timers=imported.timers_used).to_json()
    found = Compared(0, name)
    incident = Incident(0, name, parse(SCENARIOS[name], file=f"{name}.yaml"))
    compare(found, imported, inferred["episodes"], incident, Truth(of, distorted, sources, {}))
    return found


def whole(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """With the registrations that nobody saw answered, since who is dropped was held; and without the drop
    of an address that another has replaced under its name and id.

    A registration is seen on the wire as it is answered, a drop is read in the NameServer's log: of two of one moment
    the order is that in which they were recorded.
    """
    dropped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["event"] == "broker_dropped":
            dropped.setdefault(_pair(row), []).append(row)
    held: set[tuple[str, str]] = set()
    stands: dict[tuple[str, str], str] = {}
    for row in sorted((_before_its_drop(row, dropped) for row in rows), key=lambda row: row["time_ms"]):
        if row["role"] == "name_server":
            if row["event"] == "started":
                held = {one for one in held if one[0] != row["node"]}
            elif row["event"] == "registration" and not row["code"]:
                held.add(_pair(row))
                stands[_pair(row)] = row["address"]
            elif row["event"] == "broker_dropped":
                if stands.get(_pair(row), row["address"]) != row["address"]:
                    continue
                if _pair(row) not in held:
                    yield {**row, "event": "registration", "code": 0}
                held.discard(_pair(row))
        yield row


def _before_its_drop(row: dict[str, Any], dropped: dict[tuple[str, str], list[dict[str, Any]]]) -> dict[str, Any]:
    if row["event"] != "registration":
        return row
    late = [
        drop for drop in dropped.get(_pair(row), ()) if drop["seq"] > row["seq"] and drop["time_ms"] < row["time_ms"]
    ]
    return {**row, "time_ms": late[0]["time_ms"] - 0.001} if late else row


def _pair(row: dict[str, Any]) -> tuple[str, str]:
    return row["node"], row["broker_name"] or ""


def _addressed(row: dict[str, Any], hosts: dict[str, str]) -> Iterable[tuple[str, Any]]:
    """The row with the addresses that its cleaned logs have."""
    node, own = row["source"] if row["event"] == "node" else row["broker_name"], str(row["address"] or "")
    if node in hosts and own.startswith("127.0.0.1:"):
        kind = row["value"]["kind"] if row["event"] == "node" else "broker"
        port = 9876 if kind == "name_server" else 10911
        return {**row, "address": f"{hosts[node]}:{port}" if kind in ("name_server", "broker") else own}.items()
    return row.items()


def _sources(logs: Path, of: Cluster) -> Iterator[Source]:
    for path in sorted(logs.rglob("*.log")):
        file = str(path.relative_to(logs))
        is_client = path.name == "rocketmq_client.log"
        yield Source(path.parent.name, file, "client-4.9" if is_client and not of.is_5 else "server", ())


def _shifted(text: str, offset_ms: float) -> str:
    by = timedelta(milliseconds=offset_ms)
    known: dict[str, str] = {}

    def shown(found: re.Match[str]) -> str:
        stamp = found[0]
        if stamp not in known:
            known[stamp] = (datetime.strptime(stamp, _FORMAT) + by).strftime(_FORMAT)
        return known[stamp]

    return _STAMP.sub(shown, text) if offset_ms else text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", choices=SCENARIOS, help="default: all; may be repeated")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "nemesrv-apache-proof")
    options = parser.parse_args(arguments)
    found = []
    for name in options.only or SCENARIOS:
        ran(name, options.out / name)
        found.append(compared(name, options.out / name))
        print(found[-1].told(), flush=True)
    print("\n".join(table(found, [one.kind for one in found])))
    return 0 if all(one.named_first and not one.wrongly_certain for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
