"""`make clients`: every client of the catalogue through `nemesrv conform`, and docs/clients.md anew.

    python -m tests.clients_matrix [CLIENT …] [--starts N] [--out FOLDER]

What was measured is kept in measured/, so that a client that is not run now keeps its column, and one that is run is
held against the run before. Exit status: 4 where a client could not be had or not be judged, else 0: what a client
does is told, and nobody is refused for it here.
"""

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests import generated
from tests.rows_of_json import rows_of_json

from .catalogue import CLIENTS, Client
from .install import ClientMissing, command
from .page import MEASURED, keep, measured
from .twice import agreement

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "clients.md"
FAILED = 4


def conform(client: Client, folder: Path, starts: int) -> dict[str, Any] | None:
    """Its conform.json; None: it could not be put through everything. ClientMissing."""
    against = ("--profile", client.profile, "--profile-rocketmq", client.servers)
    words = ("conform", *against, "--starts", str(starts), "--out", str(folder), "--", *command(client))
    done = subprocess.run([sys.executable, "-m", "nemesrv.chaos", *words], check=False)
    found = folder / "conform.json"
    if done.returncode not in (0, 1, 3) or not found.exists():
        return None
    document: dict[str, Any] = json.loads(found.read_text("utf-8"))
    return document


def measure(client: Client, folder: Path, starts: int) -> int:
    """Put it through everything, keep what was found, and tell whether the run before found the same."""
    found = conform(client, folder, starts)
    if found is None:
        return FAILED
    record(client, found)
    return 0


def record(client: Client, found: dict[str, Any]) -> None:
    """Keep what was found, held against what was kept before."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    kept = keep(found, today, agreement(measured().get(client.name), found))
    MEASURED.mkdir(exist_ok=True)
    (MEASURED / f"{client.name}.json").write_text(rows_of_json(kept, levels=2), "utf-8")
    generated.main()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients_matrix")
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--starts", type=int, default=60)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "clients" / f"{datetime.datetime.now():%Y%m%dT%H%M%S}"
    )
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.clients if name not in CLIENTS]:
        parser.error(f"there is no client {unknown[0]!r}; there are {', '.join(CLIENTS)}")
    statuses = []
    for name in chosen.clients or CLIENTS:
        print(f"\n{CLIENTS[name].says}", flush=True)
        try:
            statuses.append(measure(CLIENTS[name], chosen.out / name, chosen.starts))
        except ClientMissing as exc:
            print(exc, flush=True)
            statuses.append(FAILED)
    print(f"\nwritten: {PAGE.relative_to(ROOT)}")
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
