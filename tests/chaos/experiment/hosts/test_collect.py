"""What is recorded on other hosts comes here while it grows; a lost host takes only what it recorded last."""

import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import orjson
import pytest

from nemesrv.chaos.apache.jvm import last_words, leave_last_words
from nemesrv.chaos.errors import HarnessError
from nemesrv.chaos.experiment.hosts import collect
from nemesrv.chaos.experiment.hosts.collect import Collector, FilePiece, new_pieces, record_missing
from nemesrv.chaos.history.files import read_raw


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "PIECE_BYTES", 300)


class Host:
    """A folder of this machine as if it were far."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder / name
        self.asked, self.lost_after, self._changed = 0, 1_000_000, threading.Condition()
        for inner in ("history/_raw", "logs", "data/broker-a"):
            (self.folder / inner).mkdir(parents=True)

    def say(self, file: str, *lines: object) -> None:
        with (self.folder / file).open("ab") as out:
            out.write(b"".join(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE) for line in lines))

    def pieces(self, known: Mapping[str, int]) -> Iterable[FilePiece]:
        if self.asked >= self.lost_after:
            raise HarnessError(f"the host {self.name} is lost")
        yield from new_pieces(str(self.folder), dict(known))
        with self._changed:
            self.asked += 1
            self._changed.notify_all()

    def await_asked(self, times: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.asked >= times, 20)


def rows(count: int, first: int = 0) -> Iterator[dict[str, int]]:
    return ({"seq": seq, "padding": seq * 10**6} for seq in range(first, first + count))


def read(path: Path) -> list[object]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_every_byte_of_every_host_is_here_once_the_run_has_ended(tmp_path: Path) -> None:
    hosts = [Host(tmp_path, "a"), Host(tmp_path, "b")]
    hosts[0].say("history/_raw/ns-0.0.jsonl", *rows(100))
    with Collector(hosts, tmp_path / "run", lambda: 0.0, follow_s=0.01) as collector:
        hosts[0].await_asked(2)
        hosts[0].say("history/_raw/ns-0.0.jsonl", *rows(50, first=100))
        hosts[1].say("history/_raw/ns-1.0.jsonl", *rows(7))
    assert read(tmp_path / "run/history/_raw/ns-0.0.jsonl") == [*rows(150)]
    assert read(tmp_path / "run/history/_raw/ns-1.0.jsonl") == [*rows(7)]
    assert collector.gone == {}


def test_the_last_words_of_a_program_that_ended_by_itself_come_too(tmp_path: Path) -> None:
    host = Host(tmp_path, "a")
    leave_last_words(host.folder / "data" / "broker-a", "broker-a's Java process ended")
    (host.folder / "data" / "broker-a" / "commitlog").write_bytes(b"stays")
    with Collector([host], tmp_path / "run", lambda: 0.0, follow_s=0.01):
        pass
    assert last_words(tmp_path / "run" / "data") == "; broker-a's Java process ended"
    assert [path.name for path in (tmp_path / "run" / "data" / "broker-a").iterdir()] == ["java-died"]


def test_a_file_that_is_no_longer_written_comes_first_and_is_deleted_there(tmp_path: Path) -> None:
    host = Host(tmp_path, "a")
    raw = [f"history/_raw/{name}.jsonl" for name in ("broker-a~1.0", "ns-0.0", "ns-0.0-000001", "ns-0.0-000002")]
    for number, file in enumerate(raw):
        host.say(file, *rows(20, first=20 * number))
    order = [*dict.fromkeys(piece.name for piece in host.pieces({}))]
    assert order == raw
    with Collector([host], tmp_path / "run", lambda: 0.0, follow_s=0.01):
        host.await_asked(3)
        host.say(raw[3], *rows(5, first=80))
    for number, file in enumerate(raw[:3]):
        assert read(tmp_path / "run" / file) == [*rows(20, first=20 * number)]
    assert read(tmp_path / "run" / raw[3]) == [*rows(25, first=60)]
    assert [path.name for path in sorted((host.folder / "history/_raw").iterdir())] == [
        "broker-a~1.0.jsonl",
        "ns-0.0-000002.jsonl",
    ]


def test_logs_of_one_name_are_told_apart_by_their_hosts(tmp_path: Path) -> None:
    hosts = [Host(tmp_path, "a"), Host(tmp_path, "b")]
    for host in hosts:
        host.say("logs/toxiproxy.log", host.name)
        host.say(f"logs/ns-{host.name}.log", 1)
    (tmp_path / "run/logs").mkdir(parents=True)
    (tmp_path / "run/logs/toxiproxy.log").write_text('"here"\n')
    with Collector(hosts, tmp_path / "run", lambda: 0.0):
        pass
    logs = {path.name: read(path) for path in (tmp_path / "run/logs").iterdir()}
    assert logs == {
        "toxiproxy.log": ["here"],
        "a-toxiproxy.log": ["a"],
        "b-toxiproxy.log": ["b"],
        "ns-a.log": [1],
        "ns-b.log": [1],
    }


def test_a_lost_host_takes_what_it_recorded_since_it_was_asked_last_and_no_other_rows(tmp_path: Path) -> None:
    kept, lost = Host(tmp_path, "kept"), Host(tmp_path, "lost")
    kept.say("history/_raw/ns-0.0.jsonl", *rows(20))
    lost.say("history/_raw/ns-1.0.jsonl", *rows(20))
    times = iter(range(0, 1_000_000, 1_000))
    with Collector([kept, lost], tmp_path / "run", lambda: float(next(times)), follow_s=0.01) as collector:
        lost.await_asked(2)
        lost.lost_after = 0
        kept.say("history/_raw/ns-0.0.jsonl", *rows(5, first=20))
    assert read(tmp_path / "run/history/_raw/ns-0.0.jsonl") == [*rows(25)]
    assert read(tmp_path / "run/history/_raw/ns-1.0.jsonl") == [*rows(20)]
    assert collector.gone.keys() == {"lost"}
    assert collector.gone["lost"].since_ms > 0
    said: list[dict[str, object]] = []
    record_missing(
        lambda event, **of: said.append({"event": event, **of}), collector.gone, {"ns-0": "kept", "ns-1": "lost"}
    )
    assert [(row["event"], row["source"]) for row in said] == [("rows_missing", "ns-1")]


def test_a_torn_line_is_skipped_by_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collect, "PIECE_BYTES", 37)
    lost = Host(tmp_path, "lost")
    lost.say("history/_raw/ns-1.0.jsonl", *rows(2))
    whole = (lost.folder / "history/_raw/ns-1.0.jsonl").read_bytes()
    (lost.folder / "history/_raw/ns-1.0.jsonl").write_bytes(whole[:-5])
    with Collector([lost], tmp_path / "run", lambda: 0.0):
        pass
    assert [*read_raw(tmp_path / "run/history/_raw/ns-1.0.jsonl")][-1] is None


def test_a_disk_that_refuses_is_told(tmp_path: Path) -> None:
    host = Host(tmp_path, "a")
    host.say("history/_raw/ns-0.0.jsonl", *rows(2))
    (tmp_path / "run").write_text("a file, where a folder is wanted")
    collector = Collector([host], tmp_path / "run", lambda: 0.0)
    collector.__enter__()
    with pytest.raises(OSError):
        collector.finish()
