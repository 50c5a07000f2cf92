"""What was recorded and logged on a host, brought into the run folder by Ray: at the end, in chunks."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

from ...actors.hosts import HostLost, RemoteHost

log = logging.getLogger("nemesrv.hosts")

CHUNK_BYTES = 16 * 1024 * 1024


def collect(hosts: Iterable[RemoteHost], run_dir: Path) -> dict[str, str]:
    """Every file of `history/_raw` and `logs` of every host is in the run folder; what is missing, by host, and why."""
    missing: dict[str, str] = {}
    for host in hosts:
        try:
            for name, size in host.ask("files"):
                _bring(host, name, size, run_dir)
        except (HostLost, OSError) as exc:
            missing[host.name] = str(exc)
            log.warning("what was recorded on %s is missing: %s", host, exc)
    return missing


def _bring(host: RemoteHost, name: str, size: int, run_dir: Path) -> None:
    at = run_dir / name
    at = at if not name.startswith("logs/") or not at.exists() else at.with_name(f"{host.name}-{at.name}")
    at.parent.mkdir(parents=True, exist_ok=True)
    with at.open("wb") as file:
        while file.tell() < size:
            data = host.ask("read", name, file.tell(), CHUNK_BYTES, timeout_s=60.0)
            if not data:
                break
            file.write(data)
