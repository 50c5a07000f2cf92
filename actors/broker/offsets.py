"""Each consumer group's offset in each queue: a table in memory, persisted as RocketMQ's consumerOffset.json.

The table's keys are `topic@group`, as in consumerOffset.json. The request processor refuses offsets of unknown groups
and topics. Upstream: `ConsumerOffsetManager`.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import orjson

from ...remoting import fastjson
from .files import KeptTable

SEPARATOR = "@"


class ConsumerOffsets(KeptTable):
    """The committed offsets of one broker, by topic, group and queue."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path)
        self._table: dict[str, dict[int, int]] = {}
        self._pulled: dict[str, dict[int, int]] = {}
        self._reset: dict[str, dict[int, int]] = {}
        if (content := self.kept()) is not None:
            self._table = _decode(content, str(path))

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> int:
        """Store that `group` has consumed the messages below `offset`. Returns the previous offset, or -1 if there was
        none. The new offset can be lower than the previous one, because an operator can reset offsets."""
        queues = self._table.setdefault(topic + SEPARATOR + group, {})
        before = queues.get(queue_id)
        if before != offset:
            queues[queue_id] = offset
            self._dirty = True
        return -1 if before is None else before

    def reset(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Make the group's next pull of the queue begin at `offset`; until that pull, `query` returns `offset`, too."""
        self._reset.setdefault(topic + SEPARATOR + group, {})[queue_id] = offset

    def take_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """Return and forget the reset offset at which this pull must begin; None if there was no reset since the last
        pull."""
        return self._reset.get(topic + SEPARATOR + group, {}).pop(queue_id, None) if self._reset else None

    def query(self, group: str, topic: str, queue_id: int) -> int:
        """Return the group's committed offset of the queue; -1 if the group has none."""
        if self._reset and queue_id in (reset := self._reset.get(topic + SEPARATOR + group, {})):
            return reset[queue_id]
        return self._table.get(topic + SEPARATOR + group, {}).get(queue_id, -1)

    def queues(self, group: str, topic: str) -> Mapping[int, int]:
        """Return, by queue id, the offsets that `group` has committed for `topic`."""
        return self._table.get(topic + SEPARATOR + group, {})

    def pulled(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Remember the offset of `group`'s next pull in memory, for statistics."""
        self._pulled.setdefault(topic + SEPARATOR + group, {})[queue_id] = offset

    def query_pulled(self, group: str, topic: str, queue_id: int) -> int:
        """Return the offset of `group`'s next pull; -1 if the group has not pulled since the broker started."""
        return self._pulled.get(topic + SEPARATOR + group, {}).get(queue_id, -1)

    def topics_of(self, group: str) -> tuple[str, ...]:
        end = SEPARATOR + group
        return tuple(sorted(key[: -len(end)] for key in self._table if key.endswith(end)))

    def groups_of(self, topic: str) -> tuple[str, ...]:
        start = topic + SEPARATOR
        return tuple(sorted(key[len(start) :] for key in self._table if key.startswith(start)))

    def take(self, body: bytes) -> None:
        """Overwrite this table's offsets by another broker's offsets, encoded by `encode`. Raises ValueError."""
        for key, queues in _decode(body, "code 43's body").items():
            if self._table.get(key) != queues:
                self._table[key] = queues
                self._dirty = True
        self.persist()

    def forget_topic(self, topic: str) -> None:
        self._forget(lambda key: key.startswith(topic + SEPARATOR))

    def forget_group(self, group: str) -> None:
        self._forget(lambda key: key.endswith(SEPARATOR + group))

    def _forget(self, is_chosen: Callable[[str], bool]) -> None:
        self._dirty = self._dirty or any(map(is_chosen, self._table))
        for table in (self._table, self._pulled, self._reset):
            for key in list(filter(is_chosen, table)):
                del table[key]

    def encode(self) -> bytes:
        """Return `{"offsetTable": {"topic@group": {"0": 7}}}`: code 43's answer, and the file's content."""
        table = {
            key: {str(queue_id): offset for queue_id, offset in queues.items()} for key, queues in self._table.items()
        }
        return orjson.dumps({"offsetTable": table}, option=orjson.OPT_SORT_KEYS)


def _decode(content: bytes, where: str) -> dict[str, dict[int, int]]:
    try:
        decoded = fastjson.loads(content)
        table = decoded["offsetTable"] if isinstance(decoded, dict) else None
        if not isinstance(table, dict):
            raise ValueError("no offsetTable")
        return {str(key): {int(q): int(offset) for q, offset in queues.items()} for key, queues in table.items()}
    except Exception as exc:
        raise ValueError(f"{where} is not a consumer offset file: {exc}") from exc
