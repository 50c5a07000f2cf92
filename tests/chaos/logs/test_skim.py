"""What is passed over is counted as if it had been read, and no row that is wanted is lost by it."""

import gzip
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from nemesrv.chaos.logs import files
from nemesrv.chaos.logs.files import planned, read_part
from nemesrv.chaos.logs.reading import read_plain, skimmed
from nemesrv.chaos.logs.shapes import _OF, QUIET, SHAPES
from nemesrv.chaos.logs.skim import NOISE, SILENT, Aside, Skim, taken
from nemesrv.chaos.logs.stream import LogRow, Reader
from nemesrv.operations.inferring.said import Hearing, all_heard, of_line
from nemesrv.operations.inferring.words import TROUBLED
from nemesrv.operations.logs_to_rows.gather import _CHANNELS, USED, _peer, gather, hosts_in, lines_of_rows
from tests.operations.made_logs import read_logs

from .shapes.texts import TEXTS

LOGS = Path(__file__).parents[3] / "docs" / "incident-logs" / "broker-partition"
CAME = "2026-11-20 20:17:{} INFO NettyServerCodecThread_3 - NETTY SERVER PIPELINE: {}\n"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs of Apache's servers and clients, with ten strangers at each line of a NameServer's."""
    folder = tmp_path_factory.mktemp("large")
    for path in sorted(LOGS.glob("*/*.log.gz")):
        place = folder / path.parent.name / path.stem
        place.parent.mkdir(exist_ok=True)
        with gzip.open(path, "rt", encoding="utf-8") as file, place.open("w", encoding="utf-8") as written:
            for number, line in enumerate(file):
                written.write(line)
                if path.stem == "namesrv.log":
                    stranger = f"10.0.4.{number % 9}:{40_000 + number}"
                    for text in ("Active", "Inactive") * 5:
                        what = f"channel{text}, the channel[{stranger}]"
                        written.write(f"{line[:19]} INFO NettyServerCodecThread_1 - NETTY SERVER PIPELINE: {what}\n")
    return folder


def both(data: bytes, aside: Aside | None = None) -> tuple[Reader, list[LogRow], Reader, list[LogRow]]:
    """Read with a skim and without it."""
    with_it, without = Reader("a.log", skim=Skim(frozenset(USED), aside)), Reader("a.log")
    return (
        with_it,
        [*with_it.block(data), *with_it.finished()],
        without,
        [row for row in (*without.block(data), *without.finished()) if row.event in USED],
    )


def test_a_large_folder_is_read_the_same_with_strangers_put_aside(large: Path, tmp_path: Path) -> None:
    passed = 0
    for number, part in enumerate(planned([large]).parts):
        aside = Aside(tmp_path / f"{number}.parquet")
        found, read = read_part(part, Skim(frozenset(USED), aside))
        rows = list(found)
        aside.close()
        passed += aside.lines
        whole, other = read_part(part)
        expected = sorted((row for row in whole if row.event in USED), key=lambda row: row.line)
        if aside.lines:
            hosts = {row.fields["address"].rpartition(":")[0] for row in expected if row.event in _CHANNELS}
            for line, text in taken(aside.path, hosts):
                reader = Reader(part.file, first_line=line)
                rows += [*reader.rows([text]), *reader.finished()]
        assert sorted(rows, key=lambda row: row.line) == expected
        assert read == other
    assert passed > 3_000


@pytest.mark.parametrize("of", TEXTS)
@pytest.mark.parametrize("head", ["2026-11-20 20:17:34 INFO main - ", "2026-11-20 20:17:34,567 WARN RocketmqClient - "])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_of_every_known_text_the_same_row_comes(of: str, head: str, end: str) -> None:
    known = strings_in(TEXTS[of])
    noise = f"{head}[persistAll] Group: g ClientId: c updateConsumeOffsetToBroker q 4{end}"
    data = "".join(f"{head}{text}{end}{noise}" for text in known if "\n" not in text).encode()
    with_it, rows, without, expected = both(data)
    assert len(known) > 50
    assert rows == expected
    assert with_it.counts == without.counts


def strings_in(said: object) -> list[str]:
    if isinstance(said, str):
        return [said]
    inner = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return [text for one in inner for text in strings_in(one)]


@pytest.mark.parametrize(
    "data",
    [
        CAME.format("34", "channelRegistered 10.0.0.9:4711") + "\tat somewhere\n" * 2,
        CAME.format("77", "channelRegistered 10.0.0.9:4711") * 3,
        CAME.format("34", "channelRegistered 10.0.0.9:4711") + CAME.format("34", "frobnicated") + "Caused by: that\n",
        CAME.format("34", "IDLE exception [10.0.0.9:4711]") + CAME.format("35", "channelRegistered 10.0.0.9:4711") * 9,
        "a half of a line\n" + CAME.format("34", "channelUnregistered, the channel[10.0.0.9:4711]") * 9,
        "ns-0 | " + CAME.format("34", "channelRegistered 10.0.0.9:4711") * 9,
    ],
    ids=["goes on", "no time", "unknown before", "wanted before", "begins in a line", "prefixed"],
)
def test_what_stands_beside_it_is_read_as_ever(data: str) -> None:
    with_it, rows, without, expected = both(data.encode())
    assert rows == expected
    assert with_it.counts == without.counts


def test_connections_are_given_by_host_and_such_of_no_plain_host_are_given_always(tmp_path: Path) -> None:
    aside = Aside(tmp_path / "aside.parquet")
    hosts = ["10.0.0.9:1", "10.0.0.8:2", "/10.0.0.9:3", "0:0:0:0:0:0:0:1:4", "nowhere"]
    reader = Reader("a.log", skim=Skim(frozenset(USED), aside))
    data = "".join(CAME.format("34", f"channelActive, the channel[{host}]") for host in hosts)
    assert list(reader.block(data.encode())) == []
    aside.close()
    assert [number for number, _ in taken(aside.path, {"10.0.0.9"})] == [1, 3, 4, 5]
    assert reader.counts.understood == aside.lines == 5


def test_no_other_event_begins_like_what_is_passed_over() -> None:
    def literal(text: str) -> str:
        return re.split(r"(?<!\\)[(.?*+{]|\\[^\[\]().]", text)[0].replace("\\", "")

    noise = {text for _, text in NOISE}
    others = [text for event, text in SHAPES if text not in noise and event not in QUIET]
    alike = {(a, b) for a in noise for b in others if begin_alike(literal(a), literal(b))}
    assert {pair for pair in alike if literal(pair[1])} == set()


def begin_alike(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def test_no_text_that_is_called_silent_states_a_cause() -> None:
    known = [text for texts in TEXTS.values() for text in strings_in(texts)]
    silent = [text for text in known if any(re.fullmatch(one.text, text) for one in SILENT)]
    assert len(silent) >= len(SILENT)
    assert not [text for text in silent if TROUBLED.search(text) or [*of_line(text, "", "a.log", 1)]]


def test_one_group_of_a_pattern_is_one_shape() -> None:
    assert all(shapes.any_of.groups == len(shapes.members) for shapes in _OF.values())


@pytest.mark.spark
def test_spark_gathers_what_is_gathered_without_it(
    large: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = [line for line in lines_of_rows(read_plain([large]).rows) if line.event in USED and line.is_whole]
    hosts = hosts_in(line for line in plain if line.event not in _CHANNELS)
    wanted = [line for line in plain if line.event not in _CHANNELS or _peer(line) in hosts]
    gathered = gather(spark, [large], listens=Hearing)
    assert sorted(gathered.lines, key=lambda line: (line.file, line.line)) == wanted
    assert all_heard(gathered.listeners) == all_heard(read_logs([large]).listeners)
    monkeypatch.setattr(files, "RANGE", 200_000)
    ranged = skimmed(spark, [large], USED, lambda rows: hosts)
    rows = [line for line in lines_of_rows(ranged.rows) if line.is_whole]
    known = [line for line in rows if line.event not in _CHANNELS or _peer(line) in hosts]
    assert sorted(known, key=lambda line: (line.file, line.line)) == wanted
