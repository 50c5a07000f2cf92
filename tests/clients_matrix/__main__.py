"""`make clients`: every client of the catalogue through `nemesrv conform`, and docs/clients.md anew.

    python -m tests.clients_matrix [CLIENT …] [--starts N] [--out FOLDER]

What was measured is kept in measured/, so that a client that is not run now keeps its column. Exit status: 4 where a
client could not be had or not be judged, else 0: what a client does is told, and nobody is refused for it here.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from pathlib import Path

from .catalogue import CLIENTS, Client
from .install import ClientMissing, command
from .page import MEASURED, keep, measured, render

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "clients.md"
FAILED = 4


def conform(client: Client, folder: Path, starts: int) -> bool:
    """Whether it was put through everything; what was found is then in measured/. ClientMissing."""
    against = ("--profile", client.profile, "--profile-rocketmq", client.servers)
    words = ("conform", *against, "--starts", str(starts), "--out", str(folder), "--", *command(client))
    done = subprocess.run([sys.executable, "-m", "nemesrv.chaos", *words], check=False)
    found = folder / "conform.json"
    if not found.exists():
        return False
    kept = keep(json.loads(found.read_text("utf-8")), datetime.datetime.now(datetime.UTC).date().isoformat())
    MEASURED.mkdir(exist_ok=True)
    (MEASURED / f"{client.name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return done.returncode in (0, 1, 3)


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
    status = 0
    for name in chosen.clients or CLIENTS:
        print(f"\n{CLIENTS[name].says}", flush=True)
        try:
            whole = conform(CLIENTS[name], chosen.out / name, chosen.starts)
        except ClientMissing as exc:
            print(exc, flush=True)
            whole = False
        status = status if whole else FAILED
        PAGE.write_text(render(measured()), "utf-8")
    print(f"\nwritten: {PAGE.relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
