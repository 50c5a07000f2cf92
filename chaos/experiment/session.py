"""An experiment that a test controls step by step, with a verdict at the end.

    with session(scenario, folder, stage, judge) as cluster:
        cluster.black_hole("broker-a <-> ns-0", for_s=155)
        cluster.must_be_valid("routes_converge")

The test's steps become the timeline of the run folder's scenario.yaml. A run of this scenario.yaml repeats the
experiment without the test and its own clients. Times are seconds of RocketMQ time.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import HarnessError, ScenarioError
from ..faults.acts_by_hand import BY_HAND
from ..faults.kinds import ACTIONS
from ..faults.link_faults import Heal
from ..faults.process_faults import HOST_ACTIONS
from ..reports.sentences import example_sentence
from ..scenarios.action import ActionModel, with_fault_ids
from ..scenarios.defect import Defect
from ..scenarios.loading import parse
from ..scenarios.model import Scenario
from ..topology import ADMIN, NodeKind
from ..verdict import Validity, Verdict
from .actions import TimelineStep
from .experiment import Experiment
from .outside_clients import ClientUnderTest
from .run_folder import RunFolder
from .stage import NOBODY_DIALS, Stage

log = logging.getLogger("nemesrv.session")

Judge = Callable[[RunFolder, Scenario], Sequence[Verdict]]
"""Judges a recorded run and writes its reports."""


_SERIES = ("rolling_restart", "restart_storm")
"""Actions that restart several nodes one after the other."""


class NotValid(AssertionError):
    """Raised if a check says INVALID or UNKNOWN. The text names each INVALID or UNKNOWN check, its reason and its first
    example."""


def __tracebackhide__(_exception: object) -> bool:
    return True


class _InTheTest:
    """Raise errors of the block as the test's own line. `step` is the method that the test called; messages name it
    instead of a scenario's file and entry."""

    def __init__(self, step: str) -> None:
        self._step = step

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, exc: BaseException | None, _tb: TracebackType | None) -> None:
        if not isinstance(exc, HarnessError):
            return
        log.debug("%s", self._step, exc_info=exc)
        if isinstance(exc, ScenarioError):
            key = re.sub(r"^timeline\.\d+\.?|\.\d+$", "", exc.key)
            raise ScenarioError(self._step, key, exc.value, exc.allowed) from None
        raise exc.with_traceback(None) from None


class RunningCluster:
    """A running cluster of NameServers, brokers and workload, with methods that control the cluster. An impossible step
    (unknown link or node) raises ScenarioError and changes nothing."""

    def __init__(self, experiment: Experiment, judge: Judge, *, end: Callable[[], None]) -> None:
        self.experiment, self._judge, self._end = experiment, judge, end
        self._begin_s = experiment.now_s
        self._scenario = experiment.scenario
        self._timeline: list[ActionModel] = []
        self._of_hosts: list[dict[str, Any]] = []
        """What was done to whole hosts, as entries of a timeline; `_timeline` has what that consists of."""
        self._over = False
        self.verdicts: Sequence[Verdict] | None = None
        """What was judged; None while the experiment runs."""

    # -- what there is

    @property
    def name_servers(self) -> tuple[str, ...]:
        """Return host:port of each NameServer for your client, through the client's own proxies."""
        return tuple(self._addresses(NodeKind.NAME_SERVER).values())

    @property
    def name_server_list(self) -> str:
        """Return the NameServers' addresses as one text, in the format of RocketMQ's `namesrvAddr`."""
        return ";".join(self.name_servers)

    @property
    def brokers(self) -> dict[str, str]:
        """Return host:port of each broker name's first master, for your client."""
        return self._addresses(NodeKind.BROKER)

    def client(self, name: str, profile: str | None = None) -> ClientUnderTest:
        """Return a client under test. Give the client's programs the returned object's `name_server_list`.

        `profile` is the profile by which the client is judged (docs/client-profiles.md); None: the profile of nemesrv's
        own clients. In the history, the client's traffic is the traffic of a node `name`. The checks of
        docs/clients-under-test.md judge this traffic. These checks are UNKNOWN if the client never connects.
        """
        self._running()
        with _InTheTest("client"):
            found = self.experiment.client_under_test(name, profile)
            clients = self.experiment.scenario.cluster.clients
            cluster = self._scenario.cluster.model_copy(update={"clients": clients})
            self._scenario = self._scenario.model_copy(update={"cluster": cluster})
            return found

    @property
    def slaves(self) -> dict[str, str]:
        """Return host:port of each slave, by broker name and id: broker-a/1."""
        return self._addresses(NodeKind.SLAVE)

    @property
    def scenario(self) -> Scenario:
        """Return the scenario, with the steps executed so far as timeline."""
        return self._scenario.model_copy(update={"timeline": tuple(self._timeline)})

    @property
    def seed(self) -> int:
        return self.experiment.seed

    @property
    def run_dir(self) -> Path:
        return self.experiment.folder.path

    @property
    def now_s(self) -> float:
        """Return the RocketMQ seconds since the workload began."""
        return self.experiment.now_s - self._begin_s

    def _addresses(self, kind: NodeKind) -> dict[str, str]:
        if not self._scenario.cluster.external:
            raise HarnessError(NOBODY_DIALS)
        return {name: str(self.experiment.addresses[name]) for name in self._scenario.topology().of(kind)}

    # -- what happens to it

    def inject(self, do: str, *targets: str, for_s: float | None = None, **settings: Any) -> None:
        """Execute any action of a scenario's timeline: a fault, a series of restarts, an act by hand.

        `for_s`: wait this number of seconds, then end the faults of all links, or the fault of these nodes. An action
        that flaps (`period_s`) needs `for_s`. Methods such as `black_hole` and `heal` execute one kind of action each.
        """
        kind = ACTIONS.get(do)
        said = {**settings, (kind and kind.acts_on) or "links": targets}
        if do == "restart_storm":
            said["for_s"], for_s = for_s, None  # its own: the restarts are drawn within it
        if do in _SERIES or settings.get("period_s") is not None:
            self._in_turn(do, for_s, said)
        else:
            self._act(do, for_s, **said)

    def black_hole(self, *links: str, stream: str = "both", for_s: float | None = None) -> None:
        """Keep the bytes on these links back until the fault ends. `for_s`: wait this number of seconds, then end the
        faults of all links."""
        self._act("black_hole", for_s, links=links, stream=stream)

    def cut(self, *links: str, for_s: float | None = None) -> None:
        """Cut these links: connections close, and new connections are refused."""
        self._act("cut", for_s, links=links)

    def latency(
        self, *links: str, latency_ms: float, jitter_ms: float = 0, stream: str = "both", for_s: float | None = None
    ) -> None:
        """Delay every byte of these links."""
        self._act("latency", for_s, links=links, stream=stream, latency_ms=latency_ms, jitter_ms=jitter_ms)

    def bandwidth(self, *links: str, rate_kb_s: int, stream: str = "both", for_s: float | None = None) -> None:
        """Limit these links to this bandwidth."""
        self._act("bandwidth", for_s, links=links, stream=stream, rate_kb_s=rate_kb_s)

    def reset(self, *links: str, for_s: float | None = None) -> None:
        """Reset connections over these links at their next bytes."""
        self._act("reset", for_s, links=links)

    def kill(self, *nodes: str, for_s: float | None = None) -> None:
        """Kill these nodes by SIGKILL. `for_s`: wait this number of seconds, then restart them."""
        self._act("kill", for_s, nodes=nodes)

    def stop(self, *nodes: str, for_s: float | None = None) -> None:
        """Stop these nodes cleanly: a broker unregisters. `for_s`: as in `kill`."""
        self._act("stop", for_s, nodes=nodes)

    def pause(self, *nodes: str, for_s: float | None = None) -> None:
        """Pause these nodes by SIGSTOP. `for_s`: wait this number of seconds, then resume them."""
        self._act("pause", for_s, nodes=nodes)

    def resume(self, *nodes: str) -> None:
        """Resume these nodes by SIGCONT."""
        self._act("resume", nodes=nodes)

    def restart(self, *nodes: str) -> None:
        """Restart these nodes: each gets a new process with the same files and port."""
        self._act("restart", nodes=nodes)

    def heal(self, *links: str) -> None:
        """End every fault of these links, or of all links."""
        self._act("heal", links=links)

    def wait(self, seconds: float) -> None:
        """Wait for this many seconds of RocketMQ time."""
        self._running()
        with _InTheTest("wait"):
            self.experiment.wait(seconds)

    def act(self, do: str, *, of: str = "this step", **settings: Any) -> tuple[str, ...]:
        """Execute one action, as a scenario's timeline does. Returns the ids of the faults that the action began. `of`
        says who asked for the action, for the text of a ScenarioError."""
        self._running()
        entry = {"at_s": round(self.now_s, 3), "do": do, **settings}
        if do == "packet_loss" and self._scenario.clock == "real":
            raise ScenarioError(of, "do", do, 'a fault that a proxy can inject, or clock="virtual"')
        if do in HOST_ACTIONS:
            return self._act_on_hosts(entry, of)
        document = self.scenario.model_dump(mode="json")
        if do in _SERIES or settings.get("period_s") is not None:
            allowed = "an action of one moment: restarts in a row, and what flaps, are for a scenario's timeline"
            raise ScenarioError(of, "do", do, allowed)
        _refuse_new_address(settings, of)
        if do in BY_HAND and ADMIN not in self._scenario.topology().nodes:
            raise ScenarioError(of, "do", do, "an entry of a scenario's timeline: only there somebody acts by hand")
        action = with_fault_ids(parse({**document, "timeline": [*document["timeline"], entry]}, file=of).timeline)[-1]
        return self._done(action)

    def _in_turn(self, do: str, for_s: float | None, settings: dict[str, Any]) -> None:
        """Execute an entry of several actions. Returns when the last action is done and flapping has ended."""
        self._running()
        with _InTheTest(do):
            _refuse_new_address(settings, do)
            before, at_s = self.scenario, round(self.now_s, 3)
            entries = [{"at_s": at_s, "do": do, **settings}]
            if settings.get("period_s") is not None:
                if for_s is None:
                    allowed = "how many seconds it flaps before it is healed: for_s=60"
                    raise ScenarioError(do, "for_s", "nothing", allowed)
                entries.append({"at_s": at_s + for_s, "do": "heal"})
            document = before.model_dump(mode="json")
            scenario = parse({**document, "timeline": [*document["timeline"], *entries]}, file=do)
            planned = [*scenario.plan(self.seed).actions]
            for one in before.plan(self.seed).actions:
                planned.remove(one)
            act = self.experiment.act
            steps = [TimelineStep(one.at_s, partial(act, one.action), one.series, one.after_s) for one in planned]
            self._timeline += with_fault_ids(scenario.timeline)[len(before.timeline) :]
            self.experiment.follow(steps, self._begin_s)

    def _done(self, action: ActionModel) -> tuple[str, ...]:
        begun = self.experiment.act(action)
        self._timeline.append(action)
        return begun or ()

    def _hosts(self) -> dict[str, list[str]]:
        """Return the nodes of each host, by the placement or as they were placed. Empty with one host."""
        found = self._scenario.hosts()
        if not found:
            for node in self._scenario.topology().nodes:
                if (host := self.experiment.stage.host_name(node)) is not None:
                    found.setdefault(host, []).append(node)
        return found

    def _act_on_hosts(self, entry: dict[str, Any], of: str) -> tuple[str, ...]:
        """Execute an action on hosts as ordinary actions, each a separate step; parts that are already in effect are
        left out."""
        hosts = self._hosts()
        if not hosts:
            allowed = "a fault of nodes or links: only a cluster on several hosts, or with `placement`, has hosts"
            raise ScenarioError(of, "do", entry["do"], allowed)
        document = self.scenario.model_dump(mode="json")
        where = {node: {"host": host} for host, nodes in hosts.items() for node in nodes}
        placed = {**document, "placement": {"hosts": [*hosts], **where}}
        in_turn = [{**done, "at_s": turn} for turn, done in enumerate([*self._of_hosts, entry])]
        before, after = (
            parse({**placed, "timeline": of_hosts}, file=of).unfolded() for of_hosts in (in_turn[:-1], in_turn)
        )
        steps = [
            {**part.model_dump(mode="json"), "at_s": entry["at_s"]}
            for part in after[len(before) :]
            if not (isinstance(part.what, Heal) and not self.experiment.links.active.keys() & {*part.what.faults})
        ]
        timeline = parse({**document, "timeline": [*document["timeline"], *steps]}, file=of).timeline
        begun = [self._done(action) for action in with_fault_ids(timeline)[len(document["timeline"]) :]]
        self._of_hosts.append(entry)
        return tuple(chain.from_iterable(begun))

    def end_link_fault(self, fault_id: str) -> None:
        self._running()
        links = self.experiment.links
        if fault_id in links.active:
            at_s = round(self.now_s, 3)
            self.experiment.end_link_fault(fault_id)
            self._timeline.append(ActionModel(at_s=at_s, what=Heal(faults=(fault_id,))))

    def _act(self, do: str, for_s: float | None = None, **settings: Any) -> None:
        with _InTheTest(do if do in ACTIONS else "inject"):
            self.act(do, **settings)
        if for_s is not None:
            self.wait(for_s)
            ended_by = getattr(ACTIONS[do], "ended_by", "")
            self._act(ended_by or "heal", **({"nodes": settings["nodes"]} if ended_by else {}))

    def _running(self) -> None:
        if self._over:
            raise HarnessError("the experiment has been judged: nothing can happen to it any more")

    # -- what it comes to

    def check(self, *checks: str) -> Sequence[Verdict]:
        """End faults, settle, read every queue, end the cluster, and judge by these checks; the default is the checks
        of the pytest marker."""
        if self.verdicts is None:
            if checks:
                document = {**self._scenario.model_dump(mode="json"), "checks": list(checks)}
                with _InTheTest("check"):
                    self._scenario = parse(document, file="check")
            with _InTheTest("the end"):
                if not self._over:
                    self._finish()
                self.verdicts = self._judged()
        return self.verdicts

    def leave(self) -> Sequence[Verdict]:
        """End the cluster without ending faults, and judge the rows that were recorded until now."""
        if self.verdicts is None:
            self._over = True
            self.verdicts = self._judged()
        return self.verdicts

    def _finish(self) -> None:
        if self._timeline:  # whoever repeats it is to wait as long
            self._timeline.append(ActionModel(at_s=round(self.now_s, 3), what=Heal()))
        else:
            self._scenario = self._scenario.model_copy(update={"steady_s": round(self.now_s, 3)})
        self._over = True
        self.experiment.has_done(self._timeline)
        self.experiment.finish()

    def _judged(self) -> Sequence[Verdict]:
        self._end()
        self.experiment.folder.keep(self.scenario, self.experiment.defect)
        return self._judge(self.experiment.folder, self.scenario)

    def must_be_valid(self, *checks: str) -> None:
        """Do what `check` does, and raise NotValid if any check is not VALID."""
        wrong = [verdict for verdict in self.check(*checks) if verdict.verdict is not Validity.VALID]
        if wrong:
            raise NotValid("\n".join(map(_advertised, wrong)))


def _refuse_new_address(settings: Mapping[str, Any], of: str) -> None:
    if settings.get("new_address"):
        allowed = "an entry of a scenario's timeline: only there it is known beforehand who needs another address"
        raise ScenarioError(of, "new_address", "true", allowed)


def _advertised(verdict: Verdict) -> str:
    lines = [f"{verdict.name} is {verdict.verdict}: {verdict.why or f'{verdict.violations} violations'}"]
    lines += [f"    {example_sentence(example, verdict.timeline_ms)}" for example in verdict.examples[:3]]
    return "\n".join(lines)


@contextmanager
def session(
    scenario: Scenario, folder: RunFolder, stage: Stage, judge: Judge, defect: Defect | None = None
) -> Iterator[RunningCluster]:
    """Run the cluster for the block. After the block no process is left, and the history can be judged. `scenario` has
    a seed and no timeline. Raises HarnessError or ClusterError if the harness fails."""
    assert scenario.seed is not None
    folder.keep(scenario, defect)
    experiment = Experiment(scenario=scenario, seed=scenario.seed, folder=folder, stage=stage, defect=defect)
    with ExitStack() as running:
        running.enter_context(experiment.running())
        cluster = RunningCluster(experiment, judge, end=running.close)
        try:
            yield cluster
        finally:
            folder.keep(cluster.scenario, defect)
