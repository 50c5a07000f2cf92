"""The benchmark measures what it says, with a compiler and without."""

from __future__ import annotations

import io
from pathlib import Path
from shutil import which

import pytest
from rich.console import Console

from nemesrv.chaos.bench import measure, namesrv
from nemesrv.chaos.bench.measure import BenchError, Shot, Tools


@pytest.mark.parametrize("compiler", [True, False])
def test_every_row_of_the_table_is_measured(compiler: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not compiler:
        monkeypatch.setattr(measure, "which", lambda name: None)
    text = io.StringIO()
    result = namesrv.run(0.05, 4, 2, rounds=1, console=Console(file=text, width=120))
    assert result.compiled is (compiler and any(map(which, ("cc", "gcc", "clang"))))
    servers = {row.server for row in result.rows}
    assert servers == ({"C echo"} if result.compiled else set()) | {"uvloop echo", "NameServer"}
    assert len(result.rows) == 4 * len(servers)
    assert all(row.load.requests > 0 for row in result.rows)
    assert "1 broker" in text.getvalue()
    assert ("No C compiler" in text.getvalue()) is not result.compiled


@pytest.mark.parametrize("compiled", [True, False])
def test_an_answer_with_other_bytes_is_counted(compiled: bool, tmp_path: Path) -> None:
    tools = measure.build(tmp_path) if compiled else Tools(loadgen=None, echo=None)
    right = Shot(
        name="x",
        request=b"ask  123456789",
        request_offset=5,
        response=b"good 123456789",
        response_offset=5,
        text=True,
    )
    wrong = Shot(
        name="x",
        request=right.request,
        request_offset=5,
        response=b"evil 123456789",
        response_offset=5,
        text=True,
    )
    with measure.uvloop_echo(right, tmp_path) as port:
        assert measure.load(tools, port, right, tmp_path, seconds=0.1, connections=2, in_flight=2).bad == 0
    with measure.uvloop_echo(wrong, tmp_path) as port:
        load = measure.load(tools, port, right, tmp_path, seconds=0.1, connections=2, in_flight=2)
        assert load.bad == load.requests > 0


def test_a_port_where_nobody_listens_is_said(tmp_path: Path) -> None:
    tools = measure.build(tmp_path)
    shot = Shot(name="x", request=b"1234", request_offset=0, response=b"1234", response_offset=0, text=False)
    with pytest.raises(BenchError, match="load generator failed"):
        measure.load(tools, 1, shot, tmp_path, seconds=0.1, connections=1, in_flight=1)
