"""Apache's NameServer and ours, side by side as processes of this machine."""

import platform
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from nemesrv.remoting.codes import V4_9_8
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile

from ..interop import programs
from ..interop.jars import Jars

JARS = {Profile.V4_9: Jars.SERVERS_4_9, Profile.V5_X: Jars.SERVERS_5_X}
V4_9_7 = V4_9_8 - 2
SCAN_PERIOD_MS = 10
"""5.x only: how often silent brokers are looked for."""


class Peers:
    """Both servers, running while the `with` block does. `settings` go into both `-c` files."""

    def __init__(self, profile: Profile, **settings: object) -> None:
        self.profile = profile
        self._settings: dict[str, object] = {"fileOnly": 1, **settings}
        if profile is Profile.V5_X:
            self._settings.setdefault("scanNotActiveBrokerInterval", SCAN_PERIOD_MS)
        self._stack = ExitStack()
        self.addresses: tuple[Address, Address] = (Address("127.0.0.1", 0), Address("127.0.0.1", 0))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        home = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="differential-")))
        jars, more = JARS[self.profile], self._settings
        theirs, their_address = programs.java_name_server("theirs", home / "theirs", jars, more=more)
        self._stack.enter_context(theirs)
        ours, our_address = programs.name_server("ours", home / "ours", profile=self.profile.value, more=more)
        self._stack.enter_context(ours)
        self.addresses = (Address.parse(their_address), Address.parse(our_address))

    def stop(self) -> None:
        self._stack.close()

    def __str__(self) -> str:
        jars = JARS[self.profile].version
        return f"rocketmq-namesrv {jars} beside profile {self.profile.value}, Python {platform.python_version()}"
