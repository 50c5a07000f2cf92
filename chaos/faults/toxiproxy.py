"""Starts a Toxiproxy server, and makes all calls of its API.

    node ── connects ─► proxy `node->peer` ── upstream ──► peer          upstream: bytes from the node to the peer
                                         ◄─ downstream ──              downstream: bytes from the peer to the node

The package toxiproxy-python keeps host and port on its class, has no time limit and ignores most HTTP errors.
`Toxiproxy` adds to toxiproxy-python a subclass per server, a time limit, and ToxiproxyError. Every call can be
repeated, because a second call changes nothing.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import orjson
import requests
import tenacity
from toxiproxy.api import APIConsumer
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from ...actors.processes import die_with_parent
from ...remoting.node.network import Address
from ..errors import ToxiproxyError
from ..installation import how_to_get_toxiproxy
from .link_faults import Toxic
from .ports import PortHolder
from .toxiproxy_binary import find_server

CALL_LIMIT_S = 8.0
START_LIMIT_S = 10.0


class Toxiproxy:
    """A client of the API of one Toxiproxy server. All methods raise ToxiproxyError if a request fails. A request whose
    connection failed is tried three times, but a request of `switch` once."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._api: Any = type("Api", (APIConsumer,), {"host": address.host, "port": address.port})

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def version(self) -> str:
        return str(self._call("get", "/version").json()["version"])

    def create(self, proxies: Mapping[str, tuple[Address, Address]]) -> None:
        """Create every proxy in one call. `proxies` gives (listen, upstream) by name. A proxy that already exists with
        these values does not change."""
        body = [
            {"name": name, "listen": str(listen), "upstream": str(upstream), "enabled": True}
            for name, (listen, upstream) in proxies.items()
        ]
        made = self._call("post", "/populate", json=body).json()["proxies"]
        if len(made) != len(body):
            raise ToxiproxyError(f"Toxiproxy made {len(made)} of {len(body)} proxies")

    def proxies(self) -> dict[str, dict[str, Any]]:
        """Return every proxy as the server shows it: listen, upstream, enabled, toxics."""
        return self._call("get", "/proxies").json()

    def set_enabled(self, proxy: str, enabled: bool) -> None:
        """Enable or disable the proxy. A disabled proxy closes its connections and refuses new connections."""
        self._call("post", f"/proxies/{proxy}", json={"enabled": enabled})

    def switch(self, wanted: Mapping[str, bool]) -> dict[str, bool]:
        """Enable or disable all of these proxies at once. Returns the proxies that were enabled before. The requests
        are pipelined on one connection, because after a crash all connections must be refused at once."""
        requests_ = [_request("GET", "/proxies", self.address)]
        requests_ += [
            _request("POST", f"/proxies/{name}", self.address, {"enabled": on}) for name, on in wanted.items()
        ]
        try:
            with socket.create_connection(self.address, CALL_LIMIT_S) as sock, sock.makefile("rb") as answers:
                sock.sendall(b"".join(requests_))
                shown, *done = [_answer(answers) for _ in requests_]
        except (OSError, http.client.HTTPException, ValueError) as exc:
            raise ToxiproxyError(f"Toxiproxy at {self.address} did not switch {len(wanted)} proxies: {exc}") from exc
        for (status, text), name in zip(done, wanted, strict=True):
            if status != http.HTTPStatus.OK:
                raise ToxiproxyError(
                    f"Toxiproxy at {self.address} did not switch {name}: {status} {text.decode(errors='replace')}"
                )
        return {name: bool(proxy["enabled"]) for name, proxy in orjson.loads(shown[1]).items()}

    def add_toxic(self, proxy: str, toxic: Toxic) -> None:
        """Add the toxic at the end of its direction's chain. If the chain already has a toxic with this name, change
        that toxic instead."""
        name, kind, direction, attributes, toxicity = toxic
        body = {"name": name, "type": kind, "stream": direction, "toxicity": toxicity, "attributes": dict(attributes)}
        try:
            self._call("post", f"/proxies/{proxy}/toxics", json=body)
        except ToxiproxyError as exc:
            if not isinstance(exc.__cause__, ProxyExists):
                raise
            self.update_toxic(proxy, name, toxicity=toxicity, attributes=attributes)

    def update_toxic(
        self, proxy: str, name: str, *, toxicity: float, attributes: Mapping[str, int] | None = None
    ) -> None:
        """Change a toxic in place. Toxicity 0 affects no byte, 1 affects every byte."""
        body: dict[str, Any] = {"toxicity": toxicity}
        if attributes is not None:
            body["attributes"] = dict(attributes)
        self._call("post", f"/proxies/{proxy}/toxics/{name}", json=body)

    def remove_toxic(self, proxy: str, name: str) -> None:
        try:
            self._call("delete", f"/proxies/{proxy}/toxics/{name}")
        except ToxiproxyError as exc:
            if not isinstance(exc.__cause__, NotFound):
                raise

    @tenacity.retry(
        retry=tenacity.retry_if_exception_type(requests.exceptions.ConnectionError),
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_fixed(0.05),
        reraise=True,
    )
    def _send(self, verb: str, path: str, **body: Any) -> requests.Response:
        # Without `proxies` an HTTP_PROXY of the environment would be asked to reach ourselves.
        return getattr(self._api, verb)(path, timeout=CALL_LIMIT_S, proxies={"http": None}, **body)

    def _call(self, verb: str, path: str, **body: Any) -> requests.Response:
        try:
            response = self._send(verb, path, **body)
        except (requests.exceptions.RequestException, ProxyExists, NotFound, InvalidToxic) as exc:
            raise ToxiproxyError(f"Toxiproxy at {self.address} refused {verb} {path}: {_text(exc)}") from exc
        if not response.ok:
            raise ToxiproxyError(
                f"Toxiproxy at {self.address} refused {verb} {path}: {response.status_code} {response.text.strip()}"
            )
        return response


def _request(verb: str, path: str, host: Address, body: Any = None) -> bytes:
    data = b"" if body is None else orjson.dumps(body)
    head = f"{verb} {urllib.parse.quote(path)} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def _answer(stream: BinaryIO) -> tuple[int, bytes]:
    """Return status and body of the next answer. The stream then stands at the beginning of the following answer."""
    response = http.client.HTTPResponse(_Stream(stream))  # type: ignore[arg-type]
    response.begin()
    return response.status, response.read()


class _Stream:
    """A connection with several answers in a row, which HTTPResponse alone would close after the first answer."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def makefile(self, _mode: str) -> _Stream:
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None: ...

    def close(self) -> None: ...


def _text(exc: BaseException) -> str:
    reason = exc.args[0] if exc.args else exc
    return reason.decode("utf-8", "replace").strip() if isinstance(reason, bytes) else str(reason)


class ToxiproxyServer:
    """A toxiproxy-server process that ends with this process, even if this process is killed. Context manager; `stop`
    can be called again.

    Start the server from a thread that lives longer than the server, best the main thread, because the server also ends
    when the thread that started it ends.
    """

    def __init__(self, log_file: Path, *, ports: PortHolder, binary: Path | None = None) -> None:
        self._log_file, self._ports, self._binary = log_file, ports, binary
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self) -> Toxiproxy:
        """Start the Toxiproxy server. Returns a client once the server answers. Raises ToxiproxyError if the server
        cannot be started, ends, or does not answer within START_LIMIT_S seconds."""
        binary = self._binary or find_server()
        api = Toxiproxy(self._ports.take())
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as log:
            try:
                self._process = subprocess.Popen(
                    [str(binary), "-host", api.address.host, "-port", str(api.address.port)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Ctrl-C is for us; we stop it after the links are healed. No session of its own: Linux shares the
                    # processors among sessions (sched_autogroup), and Spark's low priority is none beside another one.
                    process_group=0,
                    preexec_fn=die_with_parent if sys.platform == "linux" else None,
                )
            except OSError as exc:
                raise ToxiproxyError(f"{binary} cannot be started: {exc.strerror}; {how_to_get_toxiproxy()}") from exc
        try:
            self._wait_until_it_answers(api, self._process)
        except BaseException:
            self.stop()
            raise
        return api

    def _wait_until_it_answers(self, api: Toxiproxy, process: subprocess.Popen[bytes]) -> None:
        start_s = time.monotonic()
        try:
            for attempt in tenacity.Retrying(
                retry=tenacity.retry_if_exception_type(ToxiproxyError),
                stop=lambda _: process.poll() is not None or time.monotonic() - start_s > START_LIMIT_S,
                wait=tenacity.wait_fixed(0.02),
                reraise=True,
            ):
                with attempt:
                    api.version()
        except ToxiproxyError as exc:
            if process.poll() is None:
                raise
            said = self._log_file.read_text(errors="replace").strip().rpartition("\n")[2]
            raise ToxiproxyError(f"Toxiproxy ended at once with status {process.returncode}: {said}") from exc

    def stop(self) -> None:
        """End the server with all proxies and connections at once."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def __enter__(self) -> Toxiproxy:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
