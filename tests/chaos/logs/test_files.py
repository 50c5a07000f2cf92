"""Folders, archives and ranges give the same rows; what cannot be read is a sentence, and the rest is read."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from nemesrv.chaos.logs import files
from nemesrv.chaos.logs.files import KEPT, LogError, planned, read_part, with_standard_input
from nemesrv.chaos.logs.reading import LogsRead, read_plain

REGISTERED = (
    "2026-11-20 20:17:34 INFO RemotingExecutorThread_1 - new broker registered, 10.0.0.{}:10911 HAServer: x:1\n"
)
LOG = "".join(REGISTERED.format(number) for number in range(40))


def brief(logs: LogsRead) -> list[tuple[str, int, str]]:
    return [(row.file, row.line, row.fields.get("address", "")) for row in logs.rows]


@pytest.mark.parametrize(
    ("suffix", "packed"),
    [
        ("", lambda data: data),
        (".gz", gzip.compress),
        (".zst", zstandard.ZstdCompressor().compress),
        (".bz2", bz2.compress),
        (".xz", lzma.compress),
    ],
)
def test_a_compressed_log_is_read_as_a_plain_one(tmp_path: Path, suffix: str, packed: Callable[[bytes], bytes]) -> None:
    (tmp_path / f"namesrv.log{suffix}").write_bytes(packed(LOG.encode()))
    logs = read_plain([tmp_path])
    assert brief(logs) == [(f"namesrv.log{suffix}", n + 1, f"10.0.0.{n}:10911") for n in range(40)]
    assert logs.notes == []


def test_members_of_archives_are_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("ns-0/namesrv.log", LOG)
        archive.writestr("ns-0/otherdays/namesrv.1.log.gz", gzip.compress(LOG.encode()))
    with tarfile.open(tmp_path / "more.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("ns-1/namesrv.log")
        info.size = len(LOG)
        tar.addfile(info, io.BytesIO(LOG.encode()))
    logs = read_plain([tmp_path])
    assert [(file.file, file.lines, file.understood) for file in logs.files] == [
        ("all.zip/ns-0/namesrv.log", 40, 40),
        ("all.zip/ns-0/otherdays/namesrv.1.log.gz", 40, 40),
        ("more.tar.gz/ns-1/namesrv.log", 40, 40),
    ]


@pytest.mark.parametrize("range_size", [1, 7, 64, 100, 101, 1000, 4096])
@pytest.mark.parametrize("end", ["", "no line end", "\n\n"])
def test_ranges_give_the_rows_and_line_numbers_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, range_size: int, end: str
) -> None:
    said = REGISTERED.format(1) + "java.lang.X: y\n\tat z\n" + "zwölf\n" * 3 + LOG[:900] + "\n" + end
    (tmp_path / "a.log").write_text(said, encoding="utf-8")
    whole = read_plain([tmp_path])
    monkeypatch.setattr(files, "RANGE", range_size)
    ranged = read_plain([tmp_path])
    assert ranged.files == whole.files
    assert [row._replace(fields={}) for row in ranged.rows] == [row._replace(fields={}) for row in whole.rows]
    assert ranged.rows == whole.rows


def test_names_stand_for_the_folder_or_the_pattern_they_were_found_by(tmp_path: Path) -> None:
    for node in ("ns-0", "ns-1"):
        (tmp_path / node).mkdir()
        (tmp_path / node / "namesrv.log").write_text(LOG)
        (tmp_path / node / "core.dump").write_bytes(b"\0")

    def named(*places: str | Path) -> list[str]:
        return [part.file for part in planned(places).parts]

    assert named(tmp_path) == ["ns-0/namesrv.log", "ns-1/namesrv.log"]
    assert named(f"{tmp_path}/*/namesrv.log") == ["ns-0/namesrv.log", "ns-1/namesrv.log"]
    assert named(f"{tmp_path}/**/*.log") == ["ns-0/namesrv.log", "ns-1/namesrv.log"]
    assert named(tmp_path / "ns-0" / "namesrv.log") == ["namesrv.log"]
    assert named(tmp_path / "ns-0", tmp_path / "ns-1") == ["ns-0/namesrv.log", "ns-1/namesrv.log"]
    assert named(tmp_path / "ns-0", tmp_path / "ns-0" / "namesrv.log") == ["namesrv.log"]
    assert named(f"file://{tmp_path}/ns-1") == ["namesrv.log"]
    assert planned([tmp_path]).notes == [
        f"{tmp_path}: 2 files begin with no line of RocketMQ's and are not used: ns-0/core.dump, ns-1/core.dump"
    ]


def test_a_place_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        LogError, match="nowhere is not there: logs are read from files, folders, archives and patterns"
    ):
        planned([tmp_path / "nowhere"])
    with pytest.raises(LogError, match="no file is called like that"):
        planned([f"{tmp_path}/*.log"])
    with pytest.raises(LogError, match="no log is there"):
        planned([tmp_path])


def test_an_empty_file_is_said_and_the_others_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("")
    (tmp_path / "b.log").write_text(LOG)
    logs = read_plain([tmp_path])
    assert logs.notes == ["a.log is empty"]
    assert len(logs.rows) == 40


def test_a_link_to_nowhere_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").symlink_to(tmp_path / "gone.log")
    (tmp_path / "b.log").write_text(LOG)
    assert read_plain([tmp_path]).notes == ["a.log is a link to nowhere"]


def test_a_binary_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(b"\x7fELF\0\0\0")
    assert read_plain([tmp_path]).notes == ["a.log is not text and was not read"]


@pytest.mark.parametrize("length", [2 << 20, 20 << 20])
@pytest.mark.parametrize("range_size", [1 << 19, files.RANGE])
def test_of_a_line_too_long_its_beginning_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int, range_size: int
) -> None:
    monkeypatch.setattr(files, "RANGE", range_size)
    with (tmp_path / "a.log").open("w") as file:
        file.write(REGISTERED.format(1))
        file.write(
            "2026-11-20 20:17:35 INFO t - topicRouteTable.put. Topic = T, TopicRouteData[" + "x" * length + "]\n"
        )
        file.write(REGISTERED.format(2))
    logs = read_plain([tmp_path])
    assert logs.notes == [f"a.log: a line is longer than 1,048 kB; its first {KEPT // 1000} kB were read"]
    assert [(row.line, row.event) for row in logs.rows if row.event == "broker_registered"] == [
        (1, "broker_registered"),
        (3, "broker_registered"),
    ]


def test_what_is_compressed_and_ends_in_the_middle_is_read_so_far(tmp_path: Path) -> None:
    data = gzip.compress(b"".join(LOG.encode().replace(b":34 ", b":%02d " % (n // 34)) for n in range(2_000)), 1)
    (tmp_path / "a.log.gz").write_bytes(data[: len(data) // 2])
    (tmp_path / "b.log.gz").write_bytes(b"nothing packed")
    logs = read_plain([tmp_path])
    read = {file.file: file.understood for file in logs.files}
    assert read["a.log.gz"] > 1_000
    assert logs.notes[0].startswith("a.log.gz: it cannot be read after line ")
    assert logs.notes[0].endswith("what came before was read: it ends in the middle of what is compressed")
    assert logs.notes[1].startswith("b.log.gz: it cannot be read: ")


def test_no_permission_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "b.log").write_text(LOG)
    really = Path.open

    def refused(self: Path, *args: str) -> object:
        if self.name == "a.log":
            raise PermissionError(13, "Permission denied")
        return really(self, *args)

    monkeypatch.setattr(Path, "open", refused)
    logs = read_plain([tmp_path])
    assert logs.notes == ["a.log: it cannot be read: no permission"]
    assert len(logs.rows) == 40


def test_a_file_that_grows_is_read_as_far_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text(LOG)
    plan = planned([path])
    with path.open("a") as file:
        file.write(LOG)
    rows, read = read_part(plan.parts[0])
    assert len(list(rows)) == 40
    assert read.notes == [f"a.log grew while it was read: its first {len(LOG):,} bytes were read"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_what_windows_wrote_is_read(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.log").write_text(LOG.replace("\n", "\r\n"), encoding=encoding, newline="")
    assert len(read_plain([tmp_path]).rows) == 40


@pytest.mark.parametrize(
    ("year", "said"),
    [("1970", "a.log: its first stamp is of 1970-11-20, before RocketMQ was: that clock was not set"),
     ("2926", "a.log: its last stamp is of 2926-11-20, which is to come: that clock was not set")],
)  # fmt: skip
def test_wrong_years_are_said(tmp_path: Path, year: str, said: str) -> None:
    (tmp_path / "a.log").write_text(LOG.replace("2026", year))
    logs = read_plain([tmp_path])
    assert logs.notes == [said]
    assert len(logs.rows) == 40


def test_a_file_of_something_else_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    assert read_plain([tmp_path]).notes == [
        "notes.txt: none of its 2 lines was understood: it may be no log of RocketMQ's"
    ]


@pytest.mark.parametrize("node", ["prober", "broker-a"])
def test_a_log_of_a_run_is_called_so_whatever_its_node(tmp_path: Path, node: str) -> None:
    (tmp_path / "a.log").write_text(f"2023-11-14 22:13:47,535 INFO nemesrv.{node}: name server address list: none\n")
    (note,) = read_plain([tmp_path]).notes
    assert note.endswith("was understood: it is a log of nemesrv's own run")


def test_a_name_decides_nothing_where_the_lines_say_what_they_are(tmp_path: Path) -> None:
    """A collector's export, a file without an ending, a compressed one; a page about logs is none."""
    (tmp_path / "export.ndjson").write_text(f'{{"message": {LOG.splitlines()[0]!r}}}\n'.replace("'", '"'))
    (tmp_path / "1").write_text(LOG)
    (tmp_path / "2.data.gz").write_bytes(gzip.compress(LOG.encode()))
    (tmp_path / "broker.conf").write_text("brokerName=broker-a\nload balance = yes\nschedule the rest\n")
    (tmp_path / "image.png").write_bytes(b"\x89PNG\0" + LOG.encode())
    logs = read_plain([tmp_path])
    assert {one.file: one.understood for one in logs.files} == {"export.ndjson": 1, "1": 40, "2.data.gz": 40}
    assert logs.notes == [
        f"{tmp_path}: 2 files begin with no line of RocketMQ's and are not used: broker.conf, image.png"
    ]


def test_standard_input_has_no_path_in_a_sentence() -> None:
    with pytest.raises(LogError, match=r"^standard input \(-\): nothing to go by$"):  # noqa: SIM117
        with with_standard_input(["-"], io.BytesIO(b"a line\n")) as (path,):
            raise LogError(f"{path}: nothing to go by")
    assert not Path(path).exists()
