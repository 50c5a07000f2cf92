"""The message store: layout, reading, rolling, recovery from torn and zeroed tails, full disks, SIGKILL."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemesrv.actors.broker.commit_log import CommitLog, StoreError
from nemesrv.actors.broker.store import MessageStore, scheduled_tags_code
from nemesrv.actors.broker.stored import GetStatus, MessageIllegal, PutMessage, StoreFull
from nemesrv.remoting.message import StoredMessage
from nemesrv.remoting.message_properties import format_properties, tags_code
from nemesrv.remoting.node.network import Address

BORN = Address("10.0.0.9", 50000)
STORE = Address("10.0.0.1", 10911)
FILE_SIZE = 1 << 20
FIRST_FILE = Path("commitlog", "0" * 20)


def message(body: bytes, *, topic: str = "orders", queue_id: int = 0, tag: str = "TagA") -> PutMessage:
    return PutMessage(
        topic=topic,
        queue_id=queue_id,
        body=body,
        properties=format_properties({"KEYS": body.decode(), "TAGS": tag}).encode(),
        tags_code=tags_code(tag),
        born_timestamp=1000,
        born_host=BORN,
    )


def opened(directory: Path, file_size: int = FILE_SIZE) -> MessageStore:
    store = MessageStore(directory, file_size=file_size, max_message_size=4096, store_host=STORE)
    store.open()
    return store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    made = opened(tmp_path)
    yield made
    made.abandon()


def bodies(store: MessageStore, *, topic: str = "orders", queue_id: int = 0, offset: int = 0) -> list[bytes]:
    found = store.get(topic, queue_id, offset, max_messages=1000, max_bytes=1 << 30)
    return [stored.body for stored in StoredMessage.decode_all(found.data, strict=True)]


def of_small_files(directory: Path) -> None:
    """A store of twenty messages, whose files are 1000 bytes long each."""
    store = opened(directory, file_size=1000)
    for number in range(20):
        store.append([message(b"%04d" % number)], now_ms=0)
    store.close()


@contextmanager
def copied(directory: Path) -> Iterator[tuple[Path, Path]]:
    """A copy of a store, and its first file."""
    copy = directory.with_name("torn")
    shutil.copytree(directory, copy)
    yield copy, copy / FIRST_FILE
    shutil.rmtree(copy)


def test_what_is_appended_is_read_back_in_order_with_its_offsets(store: MessageStore) -> None:
    first = store.append([message(b"a")], now_ms=5)
    second = store.append([message(b"b"), message(b"c")], now_ms=6)
    assert (first.queue_offset, first.physical_offsets) == (0, (0,))
    assert second.queue_offset == 1
    found = store.get("orders", 0, 0, max_messages=32, max_bytes=1 << 18)
    assert (found.status, found.next_offset, found.min_offset, found.max_offset) == (GetStatus.FOUND, 3, 0, 3)
    stored = StoredMessage.decode_all(found.data, strict=True)
    assert [(s.body, s.queue_offset, s.physical_offset, s.store_timestamp) for s in stored] == [
        (b"a", 0, 0, 5),
        (b"b", 1, second.physical_offsets[0], 6),
        (b"c", 2, second.physical_offsets[1], 6),
    ]
    assert {(s.born_host, s.store_host) for s in stored} == {(BORN, STORE)}


def test_the_worked_example_of_the_message_format_is_what_lies_on_disk(store: MessageStore, tmp_path: Path) -> None:
    # message-format.md section 1, but for queue offset and physical offset, which a fresh store begins at 0.
    properties = b"UNIQ_KEY\x017F0000015423000001\x02TAGS\x01TagA\x02"
    put = PutMessage(
        topic="TopicTest",
        queue_id=2,
        body=b"hello",
        properties=properties,
        born_timestamp=0x18BCFE56800,
        born_host=BORN,
    )
    store.append([put], now_ms=0x18BCFE5687B)
    store.close()
    head = "daa320a7 3610a686 00000002 00000000 0000000000000000 0000000000000000 00000000 0000018bcfe56800"
    hosts = "0a000009 0000c350 0000018bcfe5687b 0a000001 00002a9f 00000000 0000000000000000"
    rest = "00000005 68656c6c6f 09 546f70696354657374" + f"{len(properties):04x}" + properties.hex()
    expected = bytes.fromhex(head + hosts + rest)
    expected = (len(expected) + 4).to_bytes(4, "big") + expected
    assert (tmp_path / FIRST_FILE).read_bytes() == expected


def test_a_pull_states_where_its_offset_stands(store: MessageStore) -> None:
    assert store.get("orders", 0, 0, max_messages=1, max_bytes=1).status is GetStatus.NO_MESSAGE_IN_QUEUE
    store.append([message(b"a"), message(b"b")], now_ms=0)

    def status(offset: int) -> tuple[GetStatus, int]:
        found = store.get("orders", 0, offset, max_messages=1, max_bytes=1)
        return found.status, found.next_offset

    assert status(0) == (GetStatus.FOUND, 1)
    assert status(2) == (GetStatus.OFFSET_OVERFLOW_ONE, 2)
    assert status(3) == (GetStatus.OFFSET_OVERFLOW_BADLY, 2)
    assert status(-1) == (GetStatus.OFFSET_TOO_SMALL, 0)


def test_a_tag_filter_skips_what_does_not_match_and_moves_on(store: MessageStore) -> None:
    for body, tag in ((b"1", "TagA"), (b"2", "TagB"), (b"3", "TagA"), (b"4", "TagB")):
        store.append([message(body, tag=tag)], now_ms=0)
    only_b = frozenset({tags_code("TagB")})
    found = store.get("orders", 0, 0, max_messages=1, max_bytes=1 << 18, tags_codes=only_b)
    assert ([s.body for s in StoredMessage.decode_all(found.data)], found.next_offset) == ([b"2"], 3)
    found = store.get("orders", 0, 2, max_messages=9, max_bytes=1 << 18, tags_codes=only_b)
    assert ([s.body for s in StoredMessage.decode_all(found.data)], found.next_offset) == ([b"4"], 4)
    none = store.get("orders", 0, 0, max_messages=9, max_bytes=1 << 18, tags_codes=frozenset({1}))
    assert (none.status, none.next_offset) == (GetStatus.NO_MATCHED_MESSAGE, 4)


def test_a_pull_stops_at_its_byte_limit_but_gives_at_least_one_message(store: MessageStore) -> None:
    store.append([message(b"x" * 1000), message(b"y" * 1000)], now_ms=0)
    assert store.get("orders", 0, 0, max_messages=9, max_bytes=10).count == 1
    assert store.get("orders", 0, 0, max_messages=9, max_bytes=10_000).count == 2


def test_queues_that_share_the_log_are_read_apart(store: MessageStore) -> None:
    for number in range(6):
        store.append([message(b"%d" % number, queue_id=number % 2)], now_ms=0)
    assert bodies(store, queue_id=0) == [b"0", b"2", b"4"]
    assert bodies(store, queue_id=1, offset=1) == [b"3", b"5"]


def test_a_file_that_is_full_ends_in_a_filler_and_no_record_spans_two(tmp_path: Path) -> None:
    store = opened(tmp_path, file_size=1000)
    for number in range(20):
        store.append([message(b"%04d" % number)], now_ms=0)
    names = sorted(path.name for path in (tmp_path / "commitlog").iterdir())
    assert names[:3] == ["0" * 20, "1000".zfill(20), "2000".zfill(20)]
    assert [(tmp_path / "commitlog" / name).stat().st_size for name in names[:-1]] == [1000] * (len(names) - 1)
    record = (tmp_path / "commitlog" / names[0]).read_bytes()
    size = int.from_bytes(record[:4], "big")
    used = 1000 // size * size if 1000 % size >= 8 else (1000 // size - 1) * size
    assert record[used : used + 8] == (1000 - used).to_bytes(4, "big") + bytes.fromhex("cbd43194")
    assert len(bodies(store)) == 20
    store.close()
    again = opened(tmp_path, file_size=1000)
    assert bodies(again) == [b"%04d" % number for number in range(20)]
    again.append([message(b"next")], now_ms=0)
    assert bodies(again, offset=20) == [b"next"]
    again.close()


def test_recovery_reports_every_queue_and_nothing_torn_after_a_clean_stop(store: MessageStore, tmp_path: Path) -> None:
    store.append([message(b"a"), message(b"b")], now_ms=0)
    store.append([message(b"c", topic="payments", queue_id=3)], now_ms=0)
    store.close()
    again = MessageStore(tmp_path, file_size=FILE_SIZE)
    recovery = again.open()
    assert recovery.recovered == {"orders": {0: 2}, "payments": {3: 1}}
    assert recovery.truncated_bytes == 0
    again.close()


def test_a_record_torn_at_any_byte_is_cut_off_and_all_before_it_stays(tmp_path: Path) -> None:
    store = opened(tmp_path / "whole")
    store.append([message(b"kept")], now_ms=0)
    last = store.append([message(b"torn")], now_ms=0).physical_offsets[0]
    end = store.max_physical_offset
    store.close()
    for size in range(last + 1, end):
        with copied(tmp_path / "whole") as (torn, file):
            os.truncate(file, size)
            again = MessageStore(torn, file_size=FILE_SIZE)
            recovery = again.open()
            assert (recovery.truncated_bytes, recovery.recovered) == (size - last, {"orders": {0: 1}}), size
            assert again.append([message(b"next")], now_ms=0).queue_offset == 1
            assert bodies(again) == [b"kept", b"next"]
            again.close()


def test_a_record_zeroed_from_any_byte_on_is_cut_off(tmp_path: Path) -> None:
    store = opened(tmp_path / "whole")
    store.append([message(b"kept")], now_ms=0)
    last = store.append([message(b"torn")], now_ms=0).physical_offsets[0]
    store.close()
    content = (tmp_path / "whole" / FIRST_FILE).read_bytes()
    for size in range(last, len(content)):
        with copied(tmp_path / "whole") as (torn, file):
            file.write_bytes(content[:size] + bytes(len(content) - size + 50))
            again = MessageStore(torn, file_size=FILE_SIZE)
            assert again.open().recovered == {"orders": {0: 1}}, size
            assert bodies(again) == [b"kept"]
            again.close()


def test_a_filler_torn_at_any_byte_is_mended(tmp_path: Path) -> None:
    store = opened(tmp_path / "whole", file_size=1000)
    while store.max_physical_offset < 1000:
        used = store.max_physical_offset
        store.append([message(b"four")], now_ms=0)
    store.close()
    os.remove(tmp_path / "whole" / "commitlog" / "1000".zfill(20))
    for size in range(used, used + 9):
        with copied(tmp_path / "whole") as (torn, file):
            os.truncate(file, size)
            again = opened(torn, file_size=1000)
            before = len(bodies(again))
            again.append([message(b"next")], now_ms=0)
            assert bodies(again, offset=before) == [b"next"]
            again.close()
            third = opened(torn, file_size=1000)
            assert bodies(third)[-1] == b"next"
            third.close()


def test_damage_before_the_newest_file_is_refused_not_cut(tmp_path: Path) -> None:
    of_small_files(tmp_path)
    content = bytearray((tmp_path / FIRST_FILE).read_bytes())
    content[90] ^= 0xFF
    (tmp_path / FIRST_FILE).write_bytes(content)
    with pytest.raises(StoreError, match="is damaged at 0"):
        opened(tmp_path, file_size=1000)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    of_small_files(tmp_path)
    os.remove(tmp_path / "commitlog" / "1000".zfill(20))
    with pytest.raises(StoreError, match="00000000000000002000"):
        opened(tmp_path, file_size=1000)


def test_when_old_files_are_gone_the_queue_begins_later(tmp_path: Path) -> None:
    of_small_files(tmp_path)
    os.remove(tmp_path / FIRST_FILE)
    again = opened(tmp_path, file_size=1000)
    first = again.min_offset("orders", 0)
    assert 0 < first < 20
    assert again.max_offset("orders", 0) == 20
    found = again.get("orders", 0, 0, max_messages=1, max_bytes=1)
    assert (found.status, found.next_offset) == (GetStatus.OFFSET_TOO_SMALL, first)
    assert bodies(again, offset=first) == [b"%04d" % number for number in range(first, 20)]
    again.close()


def test_a_full_disk_stores_nothing_of_the_message_and_later_ones_work(store: MessageStore, tmp_path: Path) -> None:
    store.append([message(b"before")], now_ms=0)
    real = store._write

    def half_then_full(data: bytes) -> None:
        real(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    store._write = half_then_full  # type: ignore[method-assign]
    with pytest.raises(StoreFull, match="disk is full"):
        store.append([message(b"lost")], now_ms=0)
    store._write = real  # type: ignore[method-assign]
    assert store.append([message(b"after")], now_ms=0).queue_offset == 1
    store.close()
    again = opened(tmp_path)
    assert bodies(again) == [b"before", b"after"]
    again.close()


def test_a_message_that_fits_no_record_is_illegal_and_changes_nothing(store: MessageStore) -> None:
    long = PutMessage(topic="t", queue_id=0, body=b"", properties=b"x" * 32768, born_timestamp=0, born_host=BORN)
    with pytest.raises(MessageIllegal, match="32768"):
        store.append([long], now_ms=0)
    with pytest.raises(MessageIllegal):
        store.append([message(b"x" * 100_000)], now_ms=0)
    assert store.max_physical_offset == 0


def test_a_deleted_topic_stays_deleted_and_begins_again_at_zero(store: MessageStore, tmp_path: Path) -> None:
    store.append([message(b"old"), message(b"old")], now_ms=0)
    store.append([message(b"other", topic="payments")], now_ms=0)
    store.delete_topic("orders")
    assert store.max_offset("orders", 0) == 0
    store.close()
    again = opened(tmp_path)
    assert again.queue_ids("orders") == ()
    assert again.append([message(b"new")], now_ms=0).queue_offset == 0
    again.close()
    third = opened(tmp_path)
    assert (bodies(third), bodies(third, topic="payments")) == ([b"new"], [b"other"])
    third.close()


def test_a_record_is_looked_up_by_its_commit_log_offset(store: MessageStore) -> None:
    store.append([message(b"a")], now_ms=0)
    where = store.append([message(b"b")], now_ms=0).physical_offsets[0]
    looked = store.look(where)
    assert looked is not None
    assert looked.body == b"b"
    assert [store.look(offset) for offset in (1, where - 1, where + 4, 10**9, -1)] == [None] * 5


def test_behind_the_end_of_the_log_there_is_nothing_to_read_also_where_a_file_is_just_full(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "commitlog", file_size=4)
    log.open()
    log.add_file()
    log.write(b"abcd")
    log.fill_up()
    assert [log.read(offset, 4) for offset in (0, 3, 4, 5)] == [b"abcd", b"d", b"", b""]
    log.close()


def test_offsets_are_found_by_store_time(store: MessageStore) -> None:
    for now_ms in (100, 200, 200, 300):
        store.append([message(b"x")], now_ms=now_ms)
    assert [store.offset_by_time("orders", 0, at) for at in (0, 100, 150, 200, 300, 301)] == [0, 0, 1, 1, 3, 4]
    assert [store.offset_by_time("orders", 0, at, upper=True) for at in (0, 100, 200, 299, 999)] == [0, 0, 2, 2, 3]
    assert (store.store_time("orders", 0, 3), store.store_time("orders", 0, 4)) == (300, -1)


def test_store_time_is_read_right_behind_an_ipv6_born_host(store: MessageStore) -> None:
    put = PutMessage(topic="t", queue_id=0, body=b"", born_timestamp=0, born_host=Address("::1", 5))
    store.append([put], now_ms=12345)
    assert store.store_time("t", 0, 0) == 12345


def test_a_delayed_message_has_its_due_time_in_the_consume_queue_also_after_recovery(tmp_path: Path) -> None:
    due = scheduled_tags_code("SCHEDULE_TOPIC_XXXX", [1000, 5000])
    store = MessageStore(tmp_path, tags_code_of=due)
    store.open()
    properties = format_properties({"DELAY": "2", "TAGS": "TagA"}).encode()
    put = PutMessage(
        topic="SCHEDULE_TOPIC_XXXX",
        queue_id=1,
        body=b"x",
        properties=properties,
        tags_code=70_000 + 5000,
        born_timestamp=0,
        born_host=BORN,
    )
    store.append([put], now_ms=70_000)
    store.close()
    again = MessageStore(tmp_path, tags_code_of=due)
    again.open()
    entry = again.entry("SCHEDULE_TOPIC_XXXX", 1, 0)
    assert entry is not None
    assert entry[2] == 75_000
    again.close()
