"""enableSlaveActingMaster: what a broker says of itself, and what a slave does when its group's least id changes."""

import pytest

from nemesrv.actors.broker.config import BrokerConfig
from nemesrv.actors.errors import ConfigError
from nemesrv.remoting.node.profile import Profile


def test_its_silence_is_borne_for_10_s_where_a_slave_may_act_else_for_120() -> None:
    acting = BrokerConfig(profile=Profile.V5_X, enable_slave_acting_master=True)
    assert (acting.acts_as_master, acting.not_active_ms) == (True, 10_000)
    assert BrokerConfig(profile=Profile.V5_X).not_active_ms == 120_000
    said = BrokerConfig(profile=Profile.V5_X, enable_slave_acting_master=True, broker_not_active_timeout_millis=20_000)
    assert said.not_active_ms == 20_000


def test_4_9_knows_no_acting_master() -> None:
    old = BrokerConfig(profile=Profile.V4_9, enable_slave_acting_master=True)
    assert (old.acts_as_master, old.not_active_ms) == (False, 120_000)


def test_a_heartbeat_that_never_comes_is_refused() -> None:
    with pytest.raises(ConfigError, match="brokerHeartbeatInterval"):
        BrokerConfig.from_properties({"brokerHeartbeatInterval": "0"})
