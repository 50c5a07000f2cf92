"""The broker's consumer groups: a table of their settings, saved as RocketMQ's subscriptionGroup.json. A consumer group
that a client names for the first time is created automatically. Upstream: `SubscriptionGroupManager`."""

import logging
from collections.abc import Mapping
from pathlib import Path

from ...remoting.bodies.client import SubscriptionGroupConfig, SubscriptionGroupWrapper
from ...remoting.bodies.route import DataVersion
from ...remoting.errors import RocketMQError
from .config import BrokerConfig
from .files import VersionedTable
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
    return bool(group) and len(group) <= GROUP_MAX_LENGTH and NAME_CHARACTERS.issuperset(group)


class SubscriptionGroups(VersionedTable):
    """The consumer groups of one broker, loaded from the file `path` if it exists."""

    what = "groups"

    def __init__(
        self, config: BrokerConfig, *, now_ms: int, path: Path | None = None, log: logging.Logger | None = None
    ) -> None:
        super().__init__(path, now_ms=now_ms, log=log)
        self.auto_create = config.auto_create_subscription_group
        self.table = {group: SubscriptionGroupConfig(group_name=group) for group in _SYSTEM_GROUPS}
        if (content := self.kept()) is not None:
            try:
                wrapper = SubscriptionGroupWrapper.decode(content)
            except RocketMQError as exc:
                raise ValueError(f"{path} is not a subscription group file: {exc}") from exc
            self.table.update(wrapper.subscription_group_table)
            self.data_version = wrapper.data_version

    def find(self, group: str, *, now_ms: int) -> SubscriptionGroupConfig | None:
        """Return the group's settings. An unknown group is created with default settings. The result is None if
        automatic creation is off, the name is not allowed, or the broker has MAX_GROUPS groups."""
        found = self.table.get(group)
        if found is None and self.auto_create and is_group_name(group) and len(self.table) < MAX_GROUPS:
            found = SubscriptionGroupConfig(group_name=group)
            self.put(found, now_ms=now_ms)
        return found

    def put(self, group: SubscriptionGroupConfig, *, now_ms: int) -> None:
        self.table[group.group_name] = group
        self._changed(now_ms)

    def take(self, groups: Mapping[str, SubscriptionGroupConfig], version: DataVersion) -> None:
        """Replace this slave's consumer groups and their DataVersion by the master's."""
        self.table = dict(groups)
        self._taken(version)

    def delete(self, group: str, *, now_ms: int) -> bool:
        if self.table.pop(group, None) is None:
            return False
        self._changed(now_ms)
        return True

    def encode(self) -> bytes:
        """Return `{"dataVersion": …, "subscriptionGroupTable": {…}}`: code 201's answer, and the file's content."""
        return SubscriptionGroupWrapper(subscription_group_table=self.table, data_version=self.data_version).encode()
