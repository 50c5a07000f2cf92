"""The stand-alone servers' log: RocketMQ's line, every line, in order, whether a loop runs or not."""

import asyncio
import io
import logging
import re

import pytest

from nemesrv.actors.standalone import LINES_MAX, LineLogger


def test_a_line_is_as_rocketmq_writes_it() -> None:
    stream = io.StringIO()
    log = LineLogger("x", stream)
    log.warning("plain 100%")
    log.error("%s and %d", "text", 7)
    log.setLevel(logging.INFO)
    log.debug("not asked for")
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    assert re.fullmatch(rf"{time} WARN main - plain 100%\n{time} ERROR main - text and 7\n", stream.getvalue())


def test_an_exception_brings_its_traceback() -> None:
    stream = io.StringIO()
    log = LineLogger("x", stream)
    try:
        raise ValueError("why")
    except ValueError as exc:
        log.exception("failed")
        log.warning("again", exc_info=exc)
        log.warning("not", exc_info=False)
    lines = stream.getvalue().splitlines()
    assert [line for line in lines if line.startswith("ValueError")] == ["ValueError: why"] * 2
    assert lines[-1].endswith("WARN main - not")


@pytest.mark.parametrize("count", [0, 1, 2, LINES_MAX, 2 * LINES_MAX + 5])
def test_lines_about_many_things_are_those_about_each(count: int) -> None:
    each, one_by_one = io.StringIO(), io.StringIO()
    items = [f"{number} 100% %s" for number in range(count)]
    log = LineLogger("x", each)
    log.warning("before")
    log.log_each(logging.INFO, "50%% of %s are %s and %d%%", items, "red", 7)
    log.setLevel(logging.WARNING)
    log.log_each(logging.INFO, "%s is not asked for", items)
    log.warning("after")
    log = LineLogger("x", one_by_one)
    log.warning("before")
    for item in items:
        log.info("50%% of %s are %s and %d%%", item, "red", 7)
    log.warning("after")
    lines, expected = ([line[20:] for line in stream.getvalue().splitlines()] for stream in (each, one_by_one))
    assert lines == expected
    assert len(lines) == count + 2


def test_lines_of_one_turn_of_the_loop_are_written_together_and_none_is_lost() -> None:
    class Stream(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            self.writes += 1
            return super().write(text)

    stream = Stream()
    log = LineLogger("x", stream)

    async def main() -> None:
        for number in range(2 * LINES_MAX + 5):
            log.warning("line %d", number)
        assert stream.writes == 2
        await asyncio.sleep(0)
        assert stream.writes == 3
        log.warning("line %d", 2 * LINES_MAX + 5)

    asyncio.run(main())
    log.flush()
    said = [int(line.rsplit(" ", 1)[1]) for line in stream.getvalue().splitlines()]
    assert said == list(range(2 * LINES_MAX + 6))
