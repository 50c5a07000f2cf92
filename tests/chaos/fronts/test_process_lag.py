"""What a program's threads waited for a processor since somebody asked last."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from nemesrv.chaos.apache import client
from nemesrv.chaos.apache.client import PROC, RunDelay


def threads(folder: Path, **waited_ns: int) -> None:
    for thread, waited in waited_ns.items():
        (folder / "7" / "task" / thread).mkdir(parents=True, exist_ok=True)
        (folder / "7" / "task" / thread / "schedstat").write_text(f"1000 {waited} 12\n")


def test_it_is_the_wait_of_the_thread_that_waited_longest_since_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PROC", tmp_path)
    threads(tmp_path, t1=5_000_000, t2=900_000_000)
    delay = RunDelay(7)
    assert delay.longest_ms() == 0.0
    threads(tmp_path, t1=30_000_000, t2=901_000_000)
    assert delay.longest_ms() == 25.0
    threads(tmp_path, t3=40_000_000)  # a new thread
    assert delay.longest_ms() == 40.0
    assert delay.longest_ms() == 0.0


def test_a_process_that_is_gone_or_a_kernel_that_does_not_count_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PROC", tmp_path)
    delay = RunDelay(7)
    assert [delay.longest_ms(), delay.longest_ms()] == [0.0, 0.0]
    threads(tmp_path, t1=5)
    (tmp_path / "7" / "task" / "t1" / "schedstat").write_text("")
    assert delay.longest_ms() == 0.0


@pytest.mark.skipif(not (PROC / "self" / "schedstat").exists(), reason="this kernel does not count it")
def test_who_has_to_share_one_processor_has_waited() -> None:
    """Two that never rest, on one processor: each waits while the other runs."""
    core = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, {{{core}}})\nprint(flush=True)\nwhile True: pass"
    both = [subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for one in both:
            assert one.stdout is not None
            one.stdout.readline()
        delay, waited_ms = RunDelay(both[0].pid), 0.0
        delay.longest_ms()
        for _ in range(10_000):  # some seconds at most
            waited_ms += delay.longest_ms()
            if waited_ms > 20:
                break
            os.sched_yield()
        assert waited_ms > 20
    finally:
        for one in both:
            one.kill()
            one.communicate()
