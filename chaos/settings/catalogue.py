"""The catalogue of settings: each by RocketMQ's name, with its class, default, allowed values, and which nodes take it.

docs/settings.md is written from it. A setting stands here only when our nodes obey it; what RocketMQ has beside these
is in `elsewhere.py` and refused by name. Defaults are those of the nodes' own configurations. Read from Apache
RocketMQ 4.9.8 and 5.3.3; `constant` says where Java has a literal in place of a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from ..topology import NodeKind
from .clients import OF_CLIENTS, OF_CONSUMERS, OF_PRODUCERS
from .servers import OF_BROKERS, OF_NAME_SERVERS
from .setting import BROKERS, CLIENTS, CONSUMERS, NAME_SERVERS, PRODUCERS, Setting

CATALOGUE: tuple[Setting, ...] = (*OF_NAME_SERVERS, *OF_BROKERS, *OF_CLIENTS, *OF_PRODUCERS, *OF_CONSUMERS)
"""Every setting that our nodes obey. A name may stand twice, for other nodes each time."""

GROUPS: Mapping[str, tuple[NodeKind, ...]] = {
    "name_servers": NAME_SERVERS,
    "brokers": BROKERS,
    "clients": CLIENTS,
    "producers": PRODUCERS,
    "consumers": CONSUMERS,
}
"""What `config:` may name beside single nodes; what a smaller group says comes before what a larger one says."""


def group_of(setting: Setting) -> tuple[NodeKind, ...]:
    """The smallest group that has every kind of node that takes it."""
    return min((kinds for kinds in GROUPS.values() if set(setting.taken_by) <= set(kinds)), key=len)


@cache
def settings_for(*kinds: NodeKind) -> Mapping[str, Setting]:
    """Name to setting, of those that any node of these kinds takes."""
    return MappingProxyType({one.name: one for one in CATALOGUE if set(one.taken_by) & set(kinds)})
