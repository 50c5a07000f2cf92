"""Apache's integration tests, class by class, at two brokers of ours, in several JVMs at once.

Our BaseConf stands before Apache's on the class path and takes addresses instead of starting servers. A class that does
not end in time is ended with its JVM, and the next one gets a new JVM.
"""

import queue
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.ran import ran

from ..interop import programs
from ..interop.jars import Jars, class_path
from ..interop.programs import Program

HERE = Path(__file__).parent
PACKAGE = "org.apache.rocketmq.test."
CLASS_TIMEOUT_S = 300.0
CLUSTER, BROKERS = "DefaultCluster", ("broker-a", "broker-b")
BROKER_SETTINGS: Mapping[str, object] = {"enablePropertyFilter": "true"}
"""As Apache's BaseConf has it; that half messages are checked each second is of our programs' brokers."""

LEFT_OUT = {
    "base.dledger.DLedgerProduceAndConsumeIT": "starts brokers of its own, with DLedger",
    "tls.TLS_IT": "TLS is not spoken",
    "tls.TLS_Mix_IT": "TLS is not spoken",
    "tls.TLS_Mix2_IT": "TLS is not spoken",
    "client.consumer.broadcast.order.OrderMsgBroadCastIT": "Apache ignores it, too",
    "client.consumer.broadcast.BaseBroadCastIT": "has no tests; others extend it",
}


@dataclass(slots=True)
class Outcome:
    """What came of one class. `failed`: test and reason; a class that did not end has one without a test's name."""

    name: str
    tests: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    took_s: float = 0.0


def classes() -> list[str]:
    """The classes of the jar that can be run here, without their package's beginning."""
    folder = Path(class_path(Jars.TESTS_4_9).removesuffix("/*"))
    with zipfile.ZipFile(folder / f"rocketmq-test-{Jars.TESTS_4_9.version}-tests.jar") as jar:
        found = (name.removesuffix(".class").replace("/", ".") for name in jar.namelist() if name.endswith("IT.class"))
        names = sorted(name.removeprefix(PACKAGE) for name in found)
    return [name for name in names if name not in LEFT_OUT]


@contextmanager
def servers(folder: Path) -> Iterator[str]:
    """A NameServer and two brokers of ours, whose files are in `folder`; the NameServer's address."""
    with ExitStack() as stack:
        server, address = programs.name_server("ns", folder / "ns")
        stack.enter_context(server)
        for name in BROKERS:
            broker, _ = programs.broker(name, folder / name, [address], name, more=BROKER_SETTINGS)
            stack.enter_context(broker)
        yield address


def run(
    names: Iterable[str],
    name_server: str,
    folder: Path,
    *,
    jvms: int = 1,
    told: Callable[[Outcome], object] = lambda _: None,
) -> list[Outcome]:
    """Run those classes at the brokers of that NameServer, each told of as it ends. What is written is in `folder`."""
    compiled = _compiled(folder / "classes")
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    outcomes: list[Outcome] = []

    def work(number: int) -> None:
        runner = _Runner(folder / f"jvm-{number}", compiled, name_server)
        try:
            while True:
                outcome = runner.run(waiting.get_nowait())
                outcomes.append(outcome)
                told(outcome)
        except queue.Empty:
            pass
        finally:
            runner.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(jvms)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes, key=lambda outcome: outcome.name)


class _Runner:
    """One JVM at a time, which runs one class after the other."""

    def __init__(self, folder: Path, compiled: Path, name_server: str) -> None:
        self._folder, self._compiled = folder, compiled
        self._properties = {
            "nemesrv.namesrv": name_server,
            "nemesrv.cluster": CLUSTER,
            "nemesrv.brokers": ",".join(BROKERS),
        }
        self._jvm: Program | None = None
        folder.mkdir()

    def run(self, name: str) -> Outcome:
        if self._jvm is None:
            self._jvm = programs.java(
                "tests", self._folder, Jars.TESTS_4_9, "RunTests", properties=self._properties, before=self._compiled
            )
            self._jvm.wait_for("READY")
        jvm, began_s = self._jvm, time.monotonic()
        start = len(jvm.lines)
        jvm.say(PACKAGE + name)
        outcome = Outcome(name)
        try:
            end = jvm.wait_for(f"DONE\t{PACKAGE}{name}\t", within_s=CLASS_TIMEOUT_S, after=start)
        except AssertionError:
            end = len(jvm.lines)
            outcome.failed.append(("", f"not over after {CLASS_TIMEOUT_S:.0f} s, or its JVM ended"))
            self.close()
        outcome.took_s = time.monotonic() - began_s
        for line in jvm.lines[start:end]:
            what, *fields = line.split("\t")
            if what == "TEST":
                outcome.tests += 1
            elif what == "FAILED":
                outcome.failed.append((fields[1], fields[2]))
        return outcome

    def close(self) -> None:
        if self._jvm is not None:
            self._jvm.kill()
            self._jvm = None


def _compiled(folder: Path) -> Path:
    folder.mkdir(parents=True)
    sources = [str(HERE / name) for name in ("BaseConf.java", "RunTests.java")]
    command = ["javac", "-nowarn", "-d", str(folder), "-cp", class_path(Jars.TESTS_4_9), *sources]
    ran(command, check=True)
    return folder


def table(outcomes: Iterable[Outcome]) -> str:
    """Markdown: each class, how many tests passed, how long it took, and what failed."""
    rows = ["| class | tests | passed | seconds | failed |", "|---|---|---|---|---|"]
    for one in outcomes:
        failed = "; ".join(f"{test or 'the class'}: {why[:160]}" for test, why in one.failed)
        passed = max(0, one.tests - len(one.failed))
        rows.append(f"| {one.name} | {one.tests} | {passed} | {one.took_s:.0f} | {failed} |")
    return "\n".join(rows)
