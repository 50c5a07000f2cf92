"""Waits that ran out, as the history has them: event `timed_out`."""

from .codes import RequestCode
from .node.network import Address
from .node.recording import Recorder

CONNECT = "connect"


def record_timed_out(
    record: Recorder, address: Address | str, code: int | None, waited_s: float, **more: object
) -> None:
    """Nobody answered a request of this code, or None: a connect, until `waited_s` had passed."""
    if code is None:
        name = CONNECT
    else:
        try:
            name = RequestCode(code).name
        except ValueError:
            name = str(code)
    record("timed_out", f=name, address=str(address), duration_ms=waited_s * 1000, **more)
