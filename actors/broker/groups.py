"""The broker's consumer groups: a table of their settings, auto-created, and RocketMQ's subscriptionGroup.json.

Upstream: `SubscriptionGroupManager`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from ...remoting.bodies.client import SubscriptionGroupConfig, SubscriptionGroupWrapper
from ...remoting.bodies.route import DataVersion
from ...remoting.errors import RocketMQError
from .config import BrokerConfig
from .files import read_whole, write_whole
from .topics import NAME_CHARACTERS

GROUP_MAX_LENGTH = 120  # its retry topic must fit a topic's 127
MAX_GROUPS = 100_000
_SYSTEM_GROUPS = (
    "TOOLS_CONSUMER",
    "FILTERSRV_CONSUMER",
    "SELF_TEST_C_GROUP",
    "CID_ONS-HTTP-PROXY",
    "CID_ONSAPI_PULL",
    "CID_ONSAPI_PERMISSION",
    "CID_ONSAPI_OWNER",
)


def is_group_name(group: str) -> bool:
    """Whether `group` can be a consumer group's name."""
    return bool(group) and len(group) <= GROUP_MAX_LENGTH and NAME_CHARACTERS.issuperset(group)


class SubscriptionGroups:
    """The groups of one broker, loaded from `path` when it exists."""

    def __init__(
        self, config: BrokerConfig, *, now_ms: int, path: Path | None = None, log: logging.Logger | None = None
    ) -> None:
        self._path = path
        self._log = log or logging.getLogger("nemesrv.broker")
        self._dirty = False
        self.auto_create = config.auto_create_subscription_group
        self.table = {group: SubscriptionGroupConfig(group_name=group) for group in _SYSTEM_GROUPS}
        self.data_version = DataVersion(timestamp=now_ms)
        content = None if path is None else read_whole(path)
        if content is not None:
            try:
                wrapper = SubscriptionGroupWrapper.decode(content)
            except RocketMQError as exc:
                raise ValueError(f"{path} is not a subscription group file: {exc}") from exc
            self.table.update(wrapper.subscription_group_table)
            self.data_version = wrapper.data_version

    def find(self, group: str, *, now_ms: int) -> SubscriptionGroupConfig | None:
        """The settings of `group`, made with the defaults when absent; None when it may not be made."""
        found = self.table.get(group)
        if found is None and self.auto_create and is_group_name(group) and len(self.table) < MAX_GROUPS:
            found = SubscriptionGroupConfig(group_name=group)
            self.put(found, now_ms=now_ms)
        return found

    def put(self, group: SubscriptionGroupConfig, *, now_ms: int) -> None:
        """Create or replace one group."""
        self.table[group.group_name] = group
        self._changed(now_ms)

    def take(self, groups: Mapping[str, SubscriptionGroupConfig], version: DataVersion) -> None:
        """All of the master's groups and its version, for a slave's own."""
        self.table, self.data_version = dict(groups), version
        self._dirty = True
        self.persist()

    def delete(self, group: str, *, now_ms: int) -> bool:
        """Remove one group; False when there was none."""
        if self.table.pop(group, None) is None:
            return False
        self._changed(now_ms)
        return True

    def encode(self) -> bytes:
        """`{"dataVersion": …, "subscriptionGroupTable": {…}}`: code 201's body, and the file."""
        return SubscriptionGroupWrapper(subscription_group_table=self.table, data_version=self.data_version).encode()

    def persist(self) -> None:
        """Write the file if a change is not in it yet. Raises OSError; the next call tries again."""
        if self._dirty and self._path is not None:
            write_whole(self._path, self.encode())
            self._dirty = False

    def _changed(self, now_ms: int) -> None:
        self.data_version = self.data_version.next(now_ms=now_ms)
        self._dirty = True
        try:
            self.persist()
        except OSError as exc:
            self._log.error("cannot write %s: %s; groups changed since will be lost by a restart", self._path, exc)
