"""Apache's NameServer and ours, side by side as processes of this machine."""

import platform
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from nemesrv.remoting.codes import V4_9_8
from nemesrv.remoting.node.network import Address
from nemesrv.remoting.node.profile import Profile

from ..free_port import free_port
from ..interop import programs
from ..interop.jars import Jars
from ..interop.programs import Program

JARS = {Profile.V4_9: Jars.SERVERS_4_9, Profile.V5_X: Jars.SERVERS_5_X}
V4_9_7 = V4_9_8 - 2
SCAN_PERIOD_MS = 10
"""5.x only: how often silent brokers are looked for."""


class Peers:
    """Both servers, running while the `with` block does. `settings` go into both `-c` files."""

    def __init__(self, profile: Profile, **settings: object) -> None:
        self.profile = profile
        self._settings = {"bindAddress": "127.0.0.1", "fileOnly": 1, **settings}
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
        ports = free_port(), free_port()
        theirs, ours = home / "theirs", home / "ours"
        their_file, our_file = self._file(theirs, ports[0]), self._file(ours, ports[1])
        main = "org.apache.rocketmq.namesrv.NamesrvStartup"
        java = programs.java("theirs", theirs, JARS[self.profile], main, "-c", str(their_file))
        self._running(java)
        self._running(programs.nemesrv("ours", ours, "namesrv", "-c", str(our_file)), java)
        self.addresses = (Address("127.0.0.1", ports[0]), Address("127.0.0.1", ports[1]))

    def stop(self) -> None:
        self._stack.close()

    def _file(self, folder: Path, port: int) -> Path:
        folder.mkdir()
        settings = {"listenPort": port, "kvConfigPath": folder / "kvConfig.json", **self._settings}
        if folder.name == "ours":
            settings["profile"] = self.profile.value
        file = folder / "namesrv.conf"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return file

    def _running(self, program: Program, *others: Program) -> None:
        self._stack.enter_context(program)
        if others:
            for each in (program, *others):
                each.wait_for("boot success")

    def __str__(self) -> str:
        jars = JARS[self.profile].version
        return f"rocketmq-namesrv {jars} beside profile {self.profile.value}, Python {platform.python_version()}"
