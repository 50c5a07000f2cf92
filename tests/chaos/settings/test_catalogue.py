"""The catalogue of settings: RocketMQ's defaults, and each reaches the configuration of every node that takes it."""

from typing import Any

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.namesrv.config import NamesrvConfig
from nemesrv.chaos.oracle.timers import Timers, timers_of_nodes
from nemesrv.chaos.settings.catalogue import CATALOGUE, SAID_ELSEWHERE, why_not
from nemesrv.chaos.settings.resolve import config_fields, settings_of
from nemesrv.chaos.settings.setting import Setting, Value
from nemesrv.chaos.topology import NodeKind
from nemesrv.clients.config import ClientConfig, ProducerConfig
from nemesrv.clients.consumer.config import ConsumerConfig
from nemesrv.remoting.node.profile import Profile
from tests.generated import not_obeyed

CONFIGURATIONS: dict[NodeKind, Any] = {
    NodeKind.NAME_SERVER: NamesrvConfig,
    NodeKind.BROKER: BrokerConfig,
    NodeKind.SLAVE: BrokerConfig,
    NodeKind.PRODUCER: ProducerConfig,
    NodeKind.CONSUMER: ConsumerConfig,
    NodeKind.PROBER: ClientConfig,
}
CASES = [
    pytest.param(setting, kind, profile, id=f"{setting.name}-{kind}-{profile}")
    for setting in CATALOGUE
    if not setting.of_apache
    for kind in setting.taken_by
    for profile in setting.profiles
]


def another(setting: Setting, profile: Profile) -> Value:
    """A value that is allowed and is not the default."""
    default, allowed = setting.default(profile), setting.allowed
    words = allowed.words.removeprefix("one of ").split(", ")
    values = (not default, 4, 20_000, 100, *words, tuple(range(1, 8)), "10.9.9.9", "2s 4s")
    return next(value for value in values if allowed.has(value) and value != default)


@pytest.mark.parametrize(("setting", "kind", "profile"), CASES)
def test_a_setting_changes_the_configuration_of_its_node(setting: Setting, kind: NodeKind, profile: Profile) -> None:
    plain = CONFIGURATIONS[kind](profile=profile)
    fields = config_fields({setting.name: another(setting, profile)}, kind, profile)
    assert CONFIGURATIONS[kind](profile=profile, **fields) != plain


@pytest.mark.parametrize(("setting", "kind", "profile"), CASES)
def test_a_default_said_changes_nothing(setting: Setting, kind: NodeKind, profile: Profile) -> None:
    fields = config_fields({setting.name: setting.default(profile)}, kind, profile)
    said = CONFIGURATIONS[kind](profile=profile, **fields)
    plain = CONFIGURATIONS[kind](profile=profile)
    if isinstance(said, BrokerConfig) and isinstance(plain, BrokerConfig):
        assert said.register_timeout_s == plain.register_timeout_s
    elif setting.name not in ("latencyMax", "notAvailableDuration"):  # these two say the profile's own out loud
        assert said == plain


def test_a_name_stands_once_for_each_kind_of_node() -> None:
    pairs = [(one.name, kind) for one in CATALOGUE for kind in one.taken_by]
    assert len(pairs) == len(set(pairs))


def test_what_cannot_be_set_is_told_and_is_no_setting() -> None:
    names = not_obeyed() | SAID_ELSEWHERE.keys()
    assert {"aclEnable", "serverWorkerThreads", "enableStreamRequestType", "messageModel"} <= names
    assert not names & {one.name for one in CATALOGUE}
    assert all(why_not(name) for name in names)
    assert why_not("noSuchSetting") is None


NODES = {
    "ns-0": NodeKind.NAME_SERVER,
    "ns-1": NodeKind.NAME_SERVER,
    "broker-a": NodeKind.BROKER,
    "broker-b": NodeKind.BROKER,
    "producer-0": NodeKind.PRODUCER,
    "consumer-0": NodeKind.CONSUMER,
    "prober": NodeKind.PROBER,
}


@pytest.mark.parametrize("profile", list(Profile))
def test_the_timers_of_a_cluster_without_settings_are_the_profiles_own(profile: Profile) -> None:
    assert timers_of_nodes(profile, 10, {}, NODES) == (Timers.for_profile(profile, time_scale=10), {})


@pytest.mark.parametrize("profile", list(Profile))
def test_every_timer_of_the_table_can_be_set(profile: Profile) -> None:
    symbols = {one.symbol for one in CATALOGUE if one.symbol and profile in one.profiles}
    assert symbols == {"R", "B", "E", "S", "I", "i", "P", "A", "C", "H", "T", "Qr", "Z"}


def timers(config: dict[str, Any], profile: Profile) -> tuple[Timers, dict[str, Any]]:
    settings = settings_of(config, NODES, profile, before={})
    return timers_of_nodes(profile, 1, settings, NODES)


def test_the_timers_of_a_group_are_the_runs() -> None:
    config = {"brokers": {"registerNameServerPeriod": 20_000}, "clients": {"pollNameServerInterval": 5_000}}
    found, differing = timers(config, Profile.V4_9)
    assert (found.R_ms, found.P_ms, differing) == (20_000, 5_000, {})


def test_where_nodes_differ_the_runs_own_are_the_longest_and_each_has_its_own() -> None:
    config = {"ns-1": {"brokerChannelExpiredTime": 60_000}, "broker-b": {"registerNameServerPeriod": 40_000}}
    found, differing = timers(config, Profile.V4_9)
    assert (found.E_ms, found.R_ms) == (120_000, 40_000)
    assert differing == {"ns-1": {"E_ms": 60_000.0}, "broker-a": {"R_ms": 30_000.0}}


def test_a_node_says_more_than_its_group_and_a_group_more_than_a_larger_one() -> None:
    config = {
        "producer-0": {"mqClientApiTimeout": 1_000},
        "consumers": {"mqClientApiTimeout": 2_000},
        "clients": {"mqClientApiTimeout": 6_000, "sendMsgTimeout": 1_500},
    }
    settings = settings_of(config, NODES, Profile.V4_9, before={})
    assert settings == {
        "producer-0": {"mqClientApiTimeout": 1_000, "sendMsgTimeout": 1_500},
        "consumer-0": {"mqClientApiTimeout": 2_000},
        "prober": {"mqClientApiTimeout": 6_000},
    }
