"""What the tests of single requests share: a broker's identity, and an answer's body."""

from typing import Any

from nemesrv.remoting import fastjson
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.node.profile import Profile

V4, V5 = Profile.V4_9, Profile.V5_X

IDENTITY = {"brokerName": "broker-a", "brokerAddr": "10.0.0.1:10911", "clusterName": "c", "brokerId": "0"}


def body(response: RemotingCommand) -> Any:
    assert response.code == 0, response.remark
    return fastjson.loads(response.body)
