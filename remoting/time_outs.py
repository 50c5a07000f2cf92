"""Records waits that timed out: event `timed_out`."""

from .codes import RequestCode
from .node.network import Address
from .node.recording import Recorder

CONNECT = "connect"


def record_timed_out(
    record: Recorder, address: Address | str, code: int | None, waited_s: float, **more: object
) -> None:
    """A request with this code (None: a connect) got no answer within `waited_s`."""
    if code is None:
        name = CONNECT
    else:
        try:
            name = RequestCode(code).name
        except ValueError:
            name = str(code)
    record("timed_out", f=name, address=str(address), duration_ms=waited_s * 1000, **more)
