"""How a synchronous send is tried again, by its producer's own settings. Plain.

| one try ended with                                    | then                                                        |
|-------------------------------------------------------|-------------------------------------------------------------|
| SEND_OK                                               | the send is over                                            |
| stored, but not as safely (10, 11, 12)                | the same, unless retryAnotherBrokerWhenNotStoreOK           |
| no connection, no answer, no address                  | the next try, while there is time (T) and one is left       |
| codes 17, 14, 1, 16, 204, 205 (5.x: 2, 1500, too)     | the next try, likewise                                      |
| any other code                                        | the send is over                                            |

A send has 1 + retryTimesWhenSendFailed tries, and sendMsgTimeout for all of them together: whoever waited for an answer
as long as that has no time for another try. Upstream: `DefaultMQProducerImpl.sendDefaultImpl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ...remoting.codes import ResponseCode
from ...remoting.node.profile import Profile
from .recorded import OURS
from .time_outs import tries
from .world import World

STORED = (
    int(ResponseCode.FLUSH_DISK_TIMEOUT),
    int(ResponseCode.SLAVE_NOT_AVAILABLE),
    int(ResponseCode.FLUSH_SLAVE_TIMEOUT),
)
_AGAIN = (
    ResponseCode.TOPIC_NOT_EXIST,
    ResponseCode.SERVICE_NOT_AVAILABLE,
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.NO_PERMISSION,
    ResponseCode.NO_BUYER_ID,
    ResponseCode.NOT_IN_CURRENT_UNIT,
)
_AGAIN_5_X = (ResponseCode.SYSTEM_BUSY, ResponseCode.GO_AWAY)
TOO_MANY = "one try more than a send has"
STORED_BEFORE = "tried again though it was stored"
ENDED_BEFORE = "tried again after an answer that ends the send"
OUT_OF_TIME = "tried again when its time was over"


class SendRules(NamedTuple):
    """Of one producer."""

    tries: int
    time_ms: float
    again: tuple[int, ...]
    """The codes after which it tries again."""
    stored_again: bool
    """Whether it does so after an answer that says that it is stored."""

    def ends(self, code: int | None) -> bool:
        """Whether a try that ended with this code, or without any, is the send's last."""
        if code is None:
            return False
        return not self.stored_again if code in STORED else code not in self.again

    def odd(self, attempt: int, *, before: str, code: int | None, ran_out: bool) -> str | None:
        """What is wrong with this try, by how the one before ended and whether it took all the send's time."""
        if before == "ok" or (code in STORED and not self.stored_again):
            return STORED_BEFORE
        if self.ends(code):
            return ENDED_BEFORE
        if ran_out:
            return OUT_OF_TIME
        return TOO_MANY if attempt >= self.tries else None


def send_rules(world: World) -> Mapping[str, SendRules]:
    """By producer, of ours; sends that choose their queue by a key have one try (`sendSelectImpl`), whatever comes."""
    if world.workload.get("ordered"):
        return {}
    codes = _AGAIN if world.timers.profile is Profile.V4_9 else (*_AGAIN, *_AGAIN_5_X)
    return {
        node.name: SendRules(
            tries=tries(world, node.name),
            time_ms=world.timers_of(node.name).T_ms,
            again=tuple(map(int, codes)),
            stored_again=bool(world.setting(node.name, "retryAnotherBrokerWhenNotStoreOK")),
        )
        for node in world.of_kind("producer")
        if node.implementation == OURS
    }
