"""What an hour of a client leaves behind, counted from what its processes said."""

from pathlib import Path

import pytest

from tests.interop.programs import Program

from .catalogue import CLIENTS
from .hour import Told, read, spend, warnings


def says(name: str, folder: Path, *lines: str) -> Program:
    program = Program(name, ("printf", "%s\\n", *lines), folder)
    program.wait_for_end(within_s=20)
    return program


def test_what_was_said_is_counted(tmp_path: Path) -> None:
    stays = says(
        "stays",
        tmp_path,
        '{"f":"sent","id":"1","type":"ok"}',
        '{"f":"sent","id":"2","type":"ok"}',
        '{"f":"sent","id":"3","type":"fail","error":"no route after 3012 ms"}',
        '{"f":"sent","id":"4","type":"fail","error":"no route after 7 ms"}',
        '{"f":"received","id":"1"}',
        "WARN connection 17 closed",
    )
    joins = says("joins", tmp_path, '{"f":"received","id":"1"}')
    told = Told()
    with stays, joins:
        read(stays, [joins], told)
    assert (told.sent, told.received, told.twice, told.lost) == (2, 1, 1, ["2"])
    assert dict(told.failed_sends) == {"no route after N ms": 2}
    assert dict(told.said) == {"WARN connection N closed": 1}
    assert dict(warnings(["12:00 WARN slow 5", "12:00 INFO fine"])) == {"N:N WARN slow N": 1}
    assert not told.is_clean
    assert next(told.lines()) == "2 sent, 1 received, 1 of them again, 1 lost"


@pytest.mark.nightly
def test_our_clients_side_by_side_have_no_errors(tmp_path: Path) -> None:
    found, _ = spend([CLIENTS["ours-4.9"], CLIENTS["ours-5.x"]], 0.2, tmp_path, settle_s=1.0)
    assert list(found) == ["ours-4.9", "ours-5.x"]
    for told in found.values():
        assert told.is_clean, "\n".join(told.lines())
        assert told.joined > 0
        assert told.sent > 5
