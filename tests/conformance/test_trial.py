"""Situations side by side: what was watched of each process, why a program cannot be examined, and a quick end."""

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from nemesrv.actors.processes import family
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.fronts.behaviour import REFUSES, SILENT
from nemesrv.chaos.fronts.observed import Answered, Asked, Behaved, Closed, Dialled, Happened, Opened, Reported
from nemesrv.conformance import scene
from nemesrv.conformance import situations as situations_module
from nemesrv.conformance import subject as subject_module
from nemesrv.conformance import trial as trial_module
from nemesrv.conformance.situations import KILL, NAME_SERVER_LIST, SITUATIONS, Situation, SituationStep, Target, Watched
from nemesrv.conformance.stand import ConformPlan
from nemesrv.conformance.subject import Program
from nemesrv.conformance.trial import Trial, run

TINY = str(Path(__file__).with_name("tiny.py"))
PYTHON = (sys.executable, "-I", "-S")
CLIENT = (*PYTHON, TINY, "{namesrv}", "{topic}")

SHORT = {
    "starts": replace(SITUATIONS["starts"], for_s=0.1),
    "quiet": Situation(name="quiet", says="", for_s=0.3),
    "refused": Situation(
        # long enough for a busy machine: the program ends by itself as soon as it is refused
        name="refused",
        says="",
        for_s=10.0,
        steps=(SituationStep(at_s=0.1, target=Target.CHOSEN, behaviour=REFUSES),),
    ),
    "consumer_dies": replace(
        SITUATIONS["consumer_dies"], for_s=0.5, steps=(SituationStep(at_s=0.2, target=Target.CLIENT, do=KILL),)
    ),
    "empty": replace(SITUATIONS["empty"], for_s=0.2),
    "list_changes": replace(
        SITUATIONS["list_changes"], for_s=0.2, steps=(SituationStep(at_s=0.1, target=Target.LIST, do=NAME_SERVER_LIST),)
    ),
}


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same situations in less than a second."""
    for module in (situations_module, trial_module, scene):
        if hasattr(module, "SITUATIONS"):
            monkeypatch.setattr(module, "SITUATIONS", SHORT)
    for limited in (scene, trial_module):
        monkeypatch.setattr(limited, "START_LIMIT_S", 3.0)  # what a busy machine may take to start a small program
    monkeypatch.setattr(trial_module, "LANE_LIMIT_S", 0.5)


def conducted(
    folder: Path, *words: str, situations: tuple[str, ...] = ("starts",), starts: int = 1, repeats: int = 1
) -> Trial:
    """What came of a run, after which nothing is left of it."""
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    plan = ConformPlan(program=Program(words), situations=situations, starts=starts, repeats=repeats)
    trial = run(plan, logs=folder / "logs", data=folder / "data")
    assert not list((folder / "data").iterdir())
    assert not family(os.getpid(), lambda command: TINY in command)
    return trial


def script(text: str) -> tuple[str, ...]:
    return (*PYTHON, "-c", text)


def test_each_process_of_each_situation_is_watched_from_its_start_to_its_end(tmp_path: Path) -> None:
    trial = conducted(tmp_path, *CLIENT, situations=tuple(SHORT), starts=3)
    assert trial.hindered == ""
    found = [(each.situation, each.number, each.ended) for each in trial.watched]
    assert found == [
        *(("starts", number, "stopped") for number in range(3)),
        ("quiet", 0, "stopped"),
        ("refused", 0, trial.watched[4].ended),
        ("consumer_dies", 0, "stopped"),
        ("consumer_dies", 1, "killed"),
        ("empty", 0, "stopped"),
    ]
    assert trial.left_out == {
        "list_changes": "the program takes its list by argument; with {namesrv_http} or {namesrv_domain} there it "
        "would be served by HTTP"
    }
    assert len({each.process for each in trial.watched}) == len(trial.watched)
    for watched in trial.watched:
        assert watched.began_ms < watched.stopping_ms <= watched.ended_ms
        assert [seen.at_ms for seen in watched.seen] == sorted(seen.at_ms for seen in watched.seen)
        assert (watched.at_work_ms is None) == (watched.situation == "empty")


def test_a_situation_that_is_run_twice_has_processes_and_logs_of_its_own_each_time(tmp_path: Path) -> None:
    trial = conducted(tmp_path, *CLIENT, situations=("starts", "consumer_dies", "quiet"), repeats=2)
    found = [(one.situation, one.number, one.log) for one in trial.watched]
    assert found == [
        ("starts", 0, "starts-000"),
        ("quiet", 0, "quiet"),
        ("quiet", 1, "quiet.2"),
        *(("consumer_dies", number, f"consumer_dies-{number}") for number in (0, 1)),
        *(("consumer_dies", number, f"consumer_dies.2-{number - 2}") for number in (2, 3)),
    ]
    killed = [one.whom for each in trial.watched for one in each.of(Happened) if one.what == KILL]
    assert killed == ["1", "1", "3", "3"]


@pytest.mark.parametrize(("second_ms", "counts_ms"), [(50.0, 50.0), (950.0, 900.0)])
def test_a_situation_in_which_this_machine_was_late_is_repeated_and_the_less_late_counts(
    second_ms: float, counts_ms: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late_ms = iter((0.0, 900.0, second_ms))  # the first process is of no situation
    asked: list[float] = []

    class LoopLateness(trial_module.LoopLateness):
        def worst_ms(self, from_ms: float, to_ms: float) -> float:
            return next(late_ms)

    def again(watched: Sequence[Watched]) -> list[str]:
        asked.extend(each.late_ms for each in watched)
        return ["quiet"]

    monkeypatch.setattr(trial_module, "LoopLateness", LoopLateness)
    plan = ConformPlan(program=Program(CLIENT), situations=("quiet",), starts=1)
    (tmp_path / "logs").mkdir()
    trial = run(plan, logs=tmp_path / "logs", data=tmp_path / "data", again=again)
    assert asked == [900.0]
    assert [(each.situation, each.late_ms) for each in trial.watched] == [("quiet", counts_ms)]
    assert trial.notes == (
        "repeated, because this machine was late: "
        f"`quiet` (0.90 s, then {second_ms / 1000:.2f} s); the less late of both counts",
    )
    assert not (tmp_path / "logs" / "again").exists()
    assert (tmp_path / "logs" / "quiet.log").exists()


@pytest.mark.parametrize(("connections", "is_longer"), [(1, False), (2, True)])
def test_a_start_lasts_until_each_client_is_known(tmp_path: Path, connections: int, *, is_longer: bool) -> None:
    text = (
        f"import runpy, socket, sys; sys.argv = ['tiny', *sys.argv[1:]]\n"
        f"host, port = sys.argv[1].split(';')[0].split(':')\n"
        f"more = [socket.create_connection((host, int(port))) for _ in range({connections - 1})]\n"
        f"runpy.run_path({TINY!r}, run_name='__main__')"
    )
    trial = conducted(tmp_path, *script(text), "{namesrv}", "{topic}")
    (watched,) = trial.watched
    assert watched.at_work_ms is not None
    lasted_ms = watched.stopping_ms - watched.at_work_ms
    assert (lasted_ms >= 1_000 * scene.SEVERAL_S - 10) is is_longer, "CI saw 0.4 ms less than 3 s"


def test_how_long_somebody_stopped_the_program_is_lateness(tmp_path: Path) -> None:
    text = (
        f"import os, runpy, subprocess, sys; sys.argv = ['tiny', *sys.argv[1:]]\n"
        f"stop = f'kill -STOP {{os.getpid()}}; sleep 0.8; kill -CONT {{os.getpid()}}'\n"
        f"subprocess.Popen(['sh', '-c', stop])\n"
        f"runpy.run_path({TINY!r}, run_name='__main__')"
    )
    trial = conducted(tmp_path, *script(text), "{namesrv}", "{topic}", situations=("quiet",), starts=1)
    assert [watched.late_ms >= 600 for watched in trial.watched] == [True]


def test_a_start_that_takes_longer_beside_others_than_alone_is_waited_for(tmp_path: Path) -> None:
    began = tmp_path / "began"
    text = (
        f"import pathlib, runpy, sys, time; sys.argv = ['tiny', *sys.argv[1:]]\n"
        f"began = pathlib.Path({str(began)!r})\n"
        f"time.sleep(3.2 if began.exists() else 0.8)\n"
        f"began.touch()\n"
        f"runpy.run_path({TINY!r}, run_name='__main__')"
    )
    trial = conducted(tmp_path, *script(text), "{namesrv}", "{topic}", situations=("quiet",), starts=1)
    (watched,) = trial.watched
    assert watched.at_work_ms is not None
    assert watched.at_work_ms - watched.began_ms > 1_000 * scene.START_LIMIT_S


def test_what_one_process_does_is_seen_in_its_order(tmp_path: Path) -> None:
    trial = conducted(tmp_path, *CLIENT, situations=("quiet",))
    (watched,) = trial.watched
    kinds = [type(seen) for seen in watched.seen if not isinstance(seen, Reported)]
    assert kinds[:4] == [Dialled, Opened, Asked, Answered]
    assert kinds.count(Closed) == 1
    assert next(watched.of(Opened)).process == watched.process
    assert next(watched.of(Dialled)).front == "ns-0"
    assert [told.f for told in watched.of(Reported)] == ["started"]
    assert (tmp_path / "logs" / "quiet.log").read_text().splitlines()[1].endswith("answered with code 0")


def test_what_a_step_does_is_seen_by_each_process_and_two_of_a_stand_are_told_apart(tmp_path: Path) -> None:
    for attempt in range(3):  # where other tests have the cores, one may be dead before it has connected
        trial = conducted(tmp_path / str(attempt), *CLIENT, situations=("refused", "consumer_dies"))
        refused, *both = trial.watched
        if all(watched.of(Opened) for watched in both):
            break
    assert [(seen.front, seen.behaviour) for seen in refused.of(Behaved)] == [("ns-0", REFUSES)]
    for watched in both:
        assert [(seen.what, seen.whom) for seen in watched.of(Happened)] == [("kill", "1")]
        assert {seen.process for seen in watched.of(Opened)} == {watched.process}
    assert both[0].ended_ms > both[1].ended_ms
    assert "in `refused` the program ended by itself (exit 1); its last output:" in trial.notes[0]


def test_a_step_after_a_poll_comes_half_a_second_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    step = SituationStep(at_s=0.1, target=Target.CHOSEN, behaviour=SILENT, after_poll=True)
    monkeypatch.setitem(SHORT, "silent", Situation(name="silent", says="", for_s=5.0, steps=(step,)))
    (watched,) = conducted(tmp_path, *CLIENT, "2", situations=("silent",)).watched
    (done,) = watched.of(Behaved)
    before = [asked.at_ms for asked in watched.of(Asked) if asked.at_ms < done.at_ms]
    answered = [answer.at_ms for answer in watched.of(Answered) if answer.at_ms < done.at_ms]
    assert len(before) == len(answered) == 2
    assert 500 <= done.at_ms - answered[-1] < 2000


def test_a_program_that_never_asks_for_its_list_by_http_is_left_out_of_that(tmp_path: Path) -> None:
    text = (
        "import os, sys; os.environ.get('NAMESRV_ADDR') or sys.exit('no list'); os.execv(sys.executable, sys.argv[2:])"
    )
    trial = conducted(tmp_path, *script(text), "{namesrv_http}", *CLIENT, situations=("quiet", "list_changes"))
    assert trial.left_out == {"list_changes": "the program never asked the address server for its list"}
    assert [each.situation for each in trial.watched] == ["quiet"]


def test_where_else_it_connects_is_told(tmp_path: Path) -> None:
    text = (
        "import os, socket, sys; socket.socket().connect_ex(('127.0.0.1', 9)); os.execv(sys.executable, sys.argv[1:])"
    )
    trial = conducted(tmp_path, *script(text), *CLIENT)
    if trial.watched[0].dials_unseen is None:
        assert trial.notes == (
            "it also connected to 127.0.0.1:9: what goes there goes round the fronts, and is not watched",
        )


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (
            script("import sys; sys.exit('cannot read my.conf')"),
            r"ended \(exit 1\) after .* last output: cannot read my.conf",
        ),
        (script("import os; os.kill(os.getpid(), 11)"), r"ended \(signal 11\) .*; it wrote nothing"),
        (script("import time; print('waiting'); time.sleep(60)"), "made no connection within 3 s: it is told"),
        (
            script("import socket, time; socket.socket().connect_ex(('127.0.0.1', 9)); time.sleep(60)"),
            "connected to 127.0.0.1:9 and to none of its NameServers|made no connection",
        ),
        ((*CLIENT[:-1], "another"), r"asked for the route of another and got none: its topic is told by NEMESRV_TOPIC"),
    ],
)
def test_why_a_program_cannot_be_examined_is_one_sentence(tmp_path: Path, program: tuple[str, ...], why: str) -> None:
    trial = conducted(tmp_path, *program)
    assert trial.watched == ()
    assert re.search(why, trial.hindered), trial.hindered
    assert "\n" not in trial.hindered


SPEAKS = """
import os, socket, sys, time
host, port = sys.argv[1].split(";")[0].split(":")
channel = socket.create_connection((host, int(port)))
channel.sendall(bytes.fromhex(sys.argv[2]))
print("waiting for an answer", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("begin", "why"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64), "speaks TLS to ns-0, and only RocketMQ's"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", r"speaks gRPC \(HTTP/2\) to ns-0, .* gRPC clients talk to a Proxy"),
        (b"GET / HTTP/1.1\r\n\r\n", "speaks HTTP to ns-0"),
        (b"\xff\xff\xff\xff\x00\x01\x02\x03", "its first bytes are ff ff ff ff"),
    ],
)
def test_a_client_of_another_protocol_is_told_so(tmp_path: Path, begin: bytes, why: str) -> None:
    trial = conducted(tmp_path, *script(SPEAKS), "{namesrv}", begin.hex())
    assert re.search(f"{why}.*; its last output: waiting for an answer$", trial.hindered), trial.hindered


def test_a_program_that_hangs_at_its_end_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "import os, signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('no SIGTERM', flush=True); "
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1); os.execv(sys.executable, sys.argv[1:])"
    )
    monkeypatch.setattr(subject_module, "STOP_S", 0.05)
    trial = conducted(tmp_path, *script(text), *CLIENT, situations=("starts", "quiet"), starts=2)
    assert trial.notes == (
        "in `starts`, `quiet` the program hung at its end: it was there 5 s after SIGTERM, and was killed; "
        "its last output: no SIGTERM",
    )
    assert [each.ended for each in trial.watched] == ["hung"] * 3


def test_a_file_that_the_system_does_not_execute_is_wrong_input(tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.write_text("no first line that names an interpreter\n")
    client.chmod(0o755)
    with pytest.raises(ScenarioError, match=r"a program that can be started \(Exec format error\)"):
        conducted(tmp_path, str(client))


def test_of_many_situations_a_few_are_named() -> None:
    assert trial_module._listed(["`a`", "`b`"]) == "`a`, `b`"
    assert trial_module._listed([f"`{n}`" for n in range(5)]) == "`0`, `1`, `2` and 2 others"
