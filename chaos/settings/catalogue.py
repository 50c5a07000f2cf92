"""The catalogue of settings: RocketMQ's name, class, default, allowed values, and the nodes that have it.

settings.toml has the settings that our nodes obey, and RocketMQ's settings that are refused by name; docs/settings.md
is generated from settings.toml. A setting's default is the default in the nodes' configurations. `constant` marks a
value that is a literal in Java instead of a setting.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from ...actors.namesrv.config import known_keys
from ...remoting.node.profile import Profile
from ..topology import NodeKind
from .setting import GROUPS, NAME_SERVERS, Setting, setting_of

_FILE = tomllib.loads(Path(__file__).with_name("settings.toml").read_text(encoding="utf-8"))

CATALOGUE: tuple[Setting, ...] = tuple(
    setting_of(group, name, entry) for group in GROUPS for name, entry in _FILE[group].items()
)
"""Every setting that our nodes obey. A name may occur twice, for different nodes."""
SAID_ELSEWHERE: Mapping[str, str] = _FILE["said_elsewhere"]
"""Settings of RocketMQ's that a scenario sets otherwise, if at all: how, or why not."""
NOT_OBEYED = frozenset(name for names in _FILE["not_obeyed"].values() for name in names)


def group_of(setting: Setting) -> tuple[NodeKind, ...]:
    """Return the smallest group that contains every kind of node that has the setting."""
    return min((kinds for kinds in GROUPS.values() if set(setting.taken_by) <= set(kinds)), key=len)


def key_of(setting: Setting) -> str:
    """Return the key that sets it for a whole group of nodes: `clients.pollNameServerInterval`."""
    return f"{next(group for group, kinds in GROUPS.items() if {*setting.taken_by} <= {*kinds})}.{setting.name}"


@cache
def settings_for(*kinds: NodeKind) -> Mapping[str, Setting]:
    return MappingProxyType({one.name: one for one in CATALOGUE if set(one.taken_by) & set(kinds)})


def why_not(name: str) -> str | None:
    """Return why a RocketMQ setting cannot be set in a scenario; None for an unknown name."""
    if name in SAID_ELSEWHERE:
        return SAID_ELSEWHERE[name]
    if name in NOT_OBEYED or name in known_keys(Profile.V5_X) - settings_for(*NAME_SERVERS).keys():
        return "RocketMQ has it, the nodes of nemesrv do nothing with it"
    return None
