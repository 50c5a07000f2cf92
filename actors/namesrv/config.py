"""The NameServer's settings under RocketMQ's own names and defaults, read from and written as Java properties.

The settings of RocketMQ's two objects, `NamesrvConfig` and `NettyServerConfig`, are in one dataclass. The key `profile`
(version 4.9 or 5.x) exists only in nemesrv. With `profile` 4.9, a setting that only 5.x has is stored and listed like
an unknown key, without effect.

Upstream: `NamesrvConfig`, `NettyServerConfig`, `Configuration`, `MixAll.properties2Object`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ...remoting.frame import FRAME_MAX
from ...remoting.headers.fields import as_text, camel_case
from ...remoting.node.profile import Profile
from ..errors import ConfigError
from .tables import BROKER_CHANNEL_EXPIRED_MS, RouteOptions

PROFILE_KEY = "profile"
_NOT_HERE = frozenset({"clusterTest", "enableControllerInNamesrv"})
"""Features that a setting switches on in RocketMQ, and that this NameServer does not have."""
_ALWAYS_BLACK = frozenset({"configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome"})


def _since_5(default: Any) -> Any:
    return field(default=default, metadata={"since": Profile.V5_X})


def _at_least(default: int, least: int, most: int = 2**31 - 1, *, since_5: bool = False) -> Any:
    metadata: dict[str, object] = {"least": least, "most": most}
    if since_5:
        metadata["since"] = Profile.V5_X
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Values that no settings file can change, because they are constants in Java. An experiment can change these
    values to see the effect."""

    broker_channel_expired_ms: int = BROKER_CHANNEL_EXPIRED_MS
    """`RouteInfoManager.BROKER_CHANNEL_EXPIRED_TIME`; a 5.x broker's registration may say otherwise."""
    scan_4_9_ms: int = 10_000
    """How often 4.9 looks for silent brokers (`NamesrvController.initialize`)."""
    frame_max: int = FRAME_MAX
    """`NettyDecoder.FRAME_MAX_LENGTH`, which the JVM's property com.rocketmq.remoting.frameMaxLength sets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamesrvConfig:
    """All settings of a NameServer. Settings of threads and sockets are accepted and listed, but have no effect."""

    profile: Profile = Profile.V4_9
    extra: Mapping[str, str] = field(default_factory=dict)
    """Keys of the file that are no settings; GET_NAMESRV_CONFIG lists them, as upstream does."""

    constants: Constants = Constants()
    rocketmq_home: str = ""
    kv_config_path: str = ""
    """Empty: kvConfig.json in the node's data folder, or nowhere when it has none."""
    config_store_path: str = ""
    """Empty: namesrv.properties in the node's data folder, or nowhere when it has none."""
    product_env_name: str = "center"
    cluster_test: bool = False
    order_message_enable: bool = False
    config_black_list: str = "configBlackList;configStorePath;kvConfigPath"
    return_order_topic_config_to_broker: bool = _since_5(True)
    client_request_thread_pool_nums: int = _at_least(8, 1, since_5=True)
    client_request_thread_pool_queue_capacity: int = _at_least(50_000, 1, since_5=True)
    default_thread_pool_nums: int = _at_least(16, 1, since_5=True)
    default_thread_pool_queue_capacity: int = _at_least(10_000, 1, since_5=True)
    scan_not_active_broker_interval: int = _at_least(5_000, 1, since_5=True)
    """Milliseconds; 4.9 scans every 10 s whatever this says."""
    un_register_broker_queue_capacity: int = _at_least(3_000, 1, since_5=True)
    support_acting_master: bool = _since_5(False)
    notify_min_broker_id_changed: bool = _since_5(False)
    enable_controller_in_namesrv: bool = _since_5(False)
    enable_all_topic_list: bool = _since_5(True)
    enable_topic_list: bool = _since_5(True)
    need_wait_for_service: bool = _since_5(False)
    wait_seconds_for_service: int = _at_least(45, 0, since_5=True)
    delete_topic_with_broker_registration: bool = _since_5(False)

    listen_port: int = _at_least(9876, 0, 65535)
    bind_address: str = "127.0.0.1"
    """The address to listen on. Upstream's default is every interface; here empty is the loopback, and 0.0.0.0 has to
    be asked for."""
    server_worker_threads: int = _at_least(8, 0)
    server_callback_executor_threads: int = _at_least(0, 0)
    server_selector_threads: int = _at_least(3, 0)
    server_oneway_semaphore_value: int = _at_least(256, 1)
    server_async_semaphore_value: int = _at_least(64, 1)
    server_channel_max_idle_time_seconds: int = _at_least(120, 1)
    server_socket_snd_buf_size: int = _at_least(0, 0)
    server_socket_rcv_buf_size: int = _at_least(0, 0)
    server_socket_backlog: int = _at_least(1024, 1)
    write_buffer_high_water_mark: int = _at_least(0, 0)
    write_buffer_low_water_mark: int = _at_least(0, 0)
    server_pooled_byte_buf_allocator_enable: bool = True
    server_netty_worker_group_enable: bool = _since_5(True)
    use_epoll_native_selector: bool = False
    enable_shutdown_gracefully: bool = _since_5(False)
    shutdown_wait_time_seconds: int = _at_least(30, 0, since_5=True)

    def __post_init__(self) -> None:
        for name, info in _FIELDS.items():
            value = getattr(self, info.name)
            least, most = info.metadata.get("least"), info.metadata.get("most")
            if least is not None and most is not None and not least <= value <= most:
                raise ConfigError("NamesrvConfig", name, str(value), f"a whole number from {least} to {most}")

    @classmethod
    def from_properties(cls, properties: Mapping[str, str], *, source: str = "properties") -> NamesrvConfig:
        """Return the defaults, changed by `properties`. ConfigError names `source`, key, value and allowed values."""
        text = properties.get(PROFILE_KEY, Profile.V4_9.value)
        try:
            profile = Profile(text.strip())
        except ValueError as exc:
            raise ConfigError(source, PROFILE_KEY, text, " or ".join(p.value for p in Profile)) from exc
        known = known_keys(profile)
        extra = {key: value for key, value in properties.items() if key not in known and key != PROFILE_KEY}
        return cls(profile=profile, extra=extra).updated(properties, source=source)

    def updated(self, properties: Mapping[str, str], *, source: str = "properties") -> NamesrvConfig:
        """Return a copy with the known keys of `properties` set; unknown keys are ignored. Raises ConfigError as
        `from_properties` does."""
        changes: dict[str, object] = {}
        for key in known_keys(self.profile) & properties.keys():
            changes[_FIELDS[key].name] = _parse(source, key, properties[key], self.profile)
        changes["extra"] = {key: properties.get(key, value) for key, value in self.extra.items()}
        return replace(self, **changes)  # type: ignore[arg-type]  # the values have just been parsed by field type

    def properties(self) -> dict[str, str]:
        """Return every setting of the profile, and the file's unknown keys, as text, sorted by key. Settings that are
        paths are left out if they have no value."""
        found = dict(self.extra)
        for key in known_keys(self.profile):
            value = getattr(self, _FIELDS[key].name)
            if value != "" or _FIELDS[key].default != "":
                found[key] = as_text(value)
        return dict(sorted(found.items()))

    def stored_properties(self) -> dict[str, str]:
        """Return the settings as written into the settings file; reading that file gives an equal NamesrvConfig."""
        return {PROFILE_KEY: self.profile.value, **self.properties()}

    @property
    def black_list(self) -> frozenset[str]:
        """Keys that UPDATE_NAMESRV_CONFIG refuses to change."""
        return _ALWAYS_BLACK | {key for key in self.config_black_list.split(";") if key}

    @property
    def scan_interval_s(self) -> float:
        ms = self.constants.scan_4_9_ms if self.profile is Profile.V4_9 else self.scan_not_active_broker_interval
        return ms / 1000

    @property
    def route_options(self) -> RouteOptions:
        """The settings that the route table uses; in 4.9 only the constant time limit for silent brokers."""
        expired_ms = self.constants.broker_channel_expired_ms
        if self.profile is Profile.V4_9:
            return RouteOptions(broker_channel_expired_ms=expired_ms)
        return RouteOptions(
            broker_channel_expired_ms=expired_ms,
            support_acting_master=self.support_acting_master,
            delete_topic_with_broker_registration=self.delete_topic_with_broker_registration,
            notify_min_broker_id_changed=self.notify_min_broker_id_changed,
            unregister_queue_capacity=self.un_register_broker_queue_capacity,
        )

    def unknown_key_lines(self, source: str) -> list[str]:
        """Return a sentence for each unknown key of the settings file, with the most similar known key."""
        lines = []
        for key in self.extra:
            near = difflib.get_close_matches(key, known_keys(self.profile), 1)
            hint = f", did you mean {near[0]}?" if near else ""
            lines.append(f"{source}: {key} is no setting of a {self.profile.value} NameServer and is ignored{hint}")
        return lines


_FIELDS = {camel_case(f.name): f for f in fields(NamesrvConfig) if f.name not in ("profile", "extra", "constants")}
_KNOWN = {
    profile: frozenset(
        key for key, f in _FIELDS.items() if profile is Profile.V5_X or f.metadata.get("since") is not Profile.V5_X
    )
    for profile in Profile
}


def known_keys(profile: Profile) -> frozenset[str]:
    """The names of the settings that a profile (4.9 or 5.x) has, as RocketMQ spells them."""
    return _KNOWN[profile]


_TRIMMED = "".join(map(chr, range(0x21)))  # Java's trim


def _parse(source: str, key: str, value: str, profile: Profile) -> object:
    setting = _FIELDS[key]
    if setting.type == "bool":
        if value.lower() not in ("true", "false"):
            raise ConfigError(source, key, value, "true or false")
        if value.lower() == "true" and key in _NOT_HERE:
            raise ConfigError(source, key, value, "false: this NameServer does not have that feature")
        return value.lower() == "true"
    if setting.type == "int":
        least, most = setting.metadata["least"], setting.metadata["most"]
        if not re.fullmatch(r"[+-]?[0-9]{1,12}", value) or not least <= int(value) <= most:
            raise ConfigError(source, key, value, f"a whole number from {least} to {most}")
        return int(value)
    return value.strip(_TRIMMED) if profile is Profile.V5_X else value
