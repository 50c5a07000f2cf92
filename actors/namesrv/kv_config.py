"""The NameServer's free key-value configuration: namespace -> key -> value, kept in one JSON file.

As in RocketMQ, every change rewrites the whole KV file, without fsync, before the request is answered; the old content
goes to `<path>.bak`. A crash of Apache's NameServer can leave no KV file (4.9 deletes the old file before it renames
the new one) or half a KV file (5.x overwrites in place). This NameServer replaces the KV file in one step.

Upstream: `KVConfigManager`, `KVConfigSerializeWrapper`.
"""

import shutil
from collections.abc import Mapping
from logging import INFO, WARNING
from pathlib import Path

from ...remoting import fastjson
from ...remoting.errors import ProtocolError
from .tables import Say, silent

ORDER_TOPIC_CONFIG = "ORDER_TOPIC_CONFIG"
"""The one namespace with a meaning: topic -> `broker-a:4;broker-b:4` (`NamesrvUtil.NAMESPACE_ORDER_TOPIC_CONFIG`)."""

FILE_MAX = 16 * 1024 * 1024
TABLE_MAX = FILE_MAX // 6
"""Characters of all names and values, each of which may take six bytes in the file. Upstream has no limit."""


class KVConfig:
    """The table of all key-value entries. With `path` None the table is only in memory."""

    def __init__(self, path: Path | None = None, *, say: Say = silent) -> None:
        self._path = path
        self._say = say
        self._table: dict[str, dict[str, str | None]] = {}

    def load(self) -> None:
        """Read the table from the file; a missing file gives an empty table. Raises ValueError with file and reason if
        the content is no KV table."""
        if self._path is None or not self._path.exists():
            return
        try:
            self._table = _table_of(self._path.read_bytes())
        except (OSError, ValueError, TypeError, ProtocolError) as exc:
            raise ValueError(f"{self._path}: not a KV config file: {exc}") from exc
        self._say(INFO, "load KV config table OK")

    def put(self, namespace: str, key: str, value: str | None) -> None:
        """Set one value and rewrite the file. Raises ValueError if the table would exceed TABLE_MAX."""
        if self._size() + len(namespace) + len(key) + len(value or "") > TABLE_MAX:
            raise ValueError(f"the KV config would exceed {TABLE_MAX} characters")
        if namespace not in self._table:
            self._table[namespace] = {}
            self._say(INFO, "putKVConfig create new Namespace %s", namespace)
        items = self._table[namespace]
        how = "create new" if items.get(key) is None else "update"
        items[key] = value
        line = f"putKVConfig {how} config item, Namespace: %s Key: %s Value: %s"
        self._say(INFO, line, namespace, key, value)
        self._persist()

    def get(self, namespace: str, key: str) -> str | None:
        return self._table.get(namespace, {}).get(key)

    def delete(self, namespace: str, key: str) -> None:
        """Delete one value, if it exists, and rewrite the file. A namespace stays even without keys."""
        items = self._table.get(namespace)
        if items is not None:
            value = items.pop(key, None)
            line = "deleteKVConfig delete a config item, Namespace: %s Key: %s Value: %s"
            self._say(INFO, line, namespace, key, "null" if value is None else value)
        self._persist()

    def namespace(self, namespace: str) -> Mapping[str, str | None] | None:
        return self._table.get(namespace)

    def say_all(self) -> None:
        """Write the whole table to the log, as upstream does every ten minutes."""
        self._say(INFO, "--------------------------------------------------------")
        self._say(INFO, "configTable SIZE: %s", len(self._table))
        for namespace, items in self._table.items():
            for key, value in items.items():
                self._say(INFO, "configTable NS: %s Key: %s Value: %s", namespace, key, value)

    def _size(self) -> int:
        return sum(
            len(namespace) + sum(len(key) + len(value or "") for key, value in items.items())
            for namespace, items in self._table.items()
        )

    def _persist(self) -> None:
        """Write the file. If the disk fails, the error is logged and the change stays in memory, as upstream."""
        if self._path is None:
            return
        temporary = self._path.with_name(self._path.name + ".tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(fastjson.dumps({"configTable": self._table}))
            if self._path.exists():
                shutil.copyfile(self._path, self._path.with_name(self._path.name + ".bak"))
            temporary.replace(self._path)
        except OSError as exc:
            self._say(WARNING, "persist kvconfig Exception, %s: %s", self._path, exc)


def _table_of(content: bytes) -> dict[str, dict[str, str | None]]:
    if len(content) > FILE_MAX:
        raise ValueError(f"{len(content)} B exceed {FILE_MAX} B")
    document = fastjson.loads(content)
    if not isinstance(document, dict):
        raise TypeError("it holds no JSON object")
    table = document.get("configTable") or {}
    if not isinstance(table, dict) or not all(isinstance(items, dict) for items in table.values()):
        raise TypeError("configTable is not an object of objects")
    return {
        str(namespace): {str(key): None if value is None else str(value) for key, value in items.items()}
        for namespace, items in table.items()
    }
