"""Where clients of RocketMQ ask for NameServers when nobody told them: an HTTP server that answers with one line.

    GET http://<domain>/rocketmq/<subgroup>[-<unit>?nofix=1]   ->   "10.0.0.1:9876;10.0.0.2:9876"

Only the NameServer of a test environment (`clusterTest`) needs it here. One request at a time, in a thread of its own.

Upstream: `MixAll.getWSAddr`, `TopAddressing.fetchNSAddr`, `HttpTinyClient`.
"""

from __future__ import annotations

import asyncio
import logging
import urllib.request
from dataclasses import dataclass

DEFAULT_DOMAIN = "jmenv.tbsite.net"
DEFAULT_SUBGROUP = "nsaddr"
TIMEOUT_S = 3.0
_ANSWER_MAX = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressServer:
    """One such server; `domain` may name a port, else it is 8080."""

    unit: str
    domain: str = DEFAULT_DOMAIN
    subgroup: str = DEFAULT_SUBGROUP

    @property
    def url(self) -> str:
        host = self.domain if self.domain.find(":") > 0 else f"{self.domain}:8080"
        url = f"http://{host}/rocketmq/{self.subgroup}"
        return f"{url}-{self.unit}?nofix=1" if self.unit.strip() else url

    async def fetch(self, log: logging.Logger) -> str | None:
        """The first line of the answer, stripped; None, and a line in the log, when there is none."""
        try:
            return await asyncio.to_thread(self._get)
        except (OSError, ValueError) as exc:  # every error of urllib and of the socket is an OSError
            log.error("fetch name server address exception %s", exc)
            log.warning("connect to %s failed, maybe the domain name %s not bind in /etc/hosts", self.url, self.domain)
            return None

    def _get(self) -> str | None:
        with urllib.request.urlopen(self.url, timeout=TIMEOUT_S) as response:
            text: str = response.read(_ANSWER_MAX).decode("utf-8", "replace").strip()
        return text.splitlines()[0] if text else None
