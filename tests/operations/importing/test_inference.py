"""Faults that were done are named first, of recorded runs of which only what logs would tell is left."""

from pathlib import Path

import pytest

from tests.operations.importing.inference import KINDS, NOTHING, TWO, drawn, judged


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [*KINDS, NOTHING, TWO])
def test_what_was_done_is_named_first_and_nothing_wrong_is_certain(tmp_path: Path, kind: str) -> None:
    found = [judged(drawn(seed, [kind]), tmp_path / str(seed)) for seed in (7001, 7002)]
    assert [(one.rank_one, one.wrong_certain) for one in found] == [(True, [])] * 2


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [*KINDS, NOTHING])
def test_without_one_servers_log_nothing_wrong_is_certain(tmp_path: Path, kind: str) -> None:
    for missing in ("ns-0", "broker-a"):
        assert judged(drawn(7003, [kind]), tmp_path / missing, missing=missing).wrong_certain == []
