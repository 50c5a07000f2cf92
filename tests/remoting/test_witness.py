"""What a broker's transport records, whatever the broker makes of it."""

from types import SimpleNamespace

import pytest

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.witness import BrokerWitness

V2 = RequestCode.SEND_MESSAGE_V2
A, B = "KEYS\x01k-0\x02UNIQ_KEY\x01A\x02", "UNIQ_KEY\x01B\x02"


@pytest.mark.parametrize(
    ("sends", "found"),
    [
        ([(V2, 1, A), (V2, 1, A), (V2, 1, A)], ["k-0", "k-0"]),
        ([(V2, 1, A), (V2, 1, B), (V2, 1, B)], ["B"]),
        ([(V2, 1, A), (V2, 2, A)], []),
        ([(RequestCode.SEND_MESSAGE, 1, A), (RequestCode.SEND_MESSAGE, 1, A)], ["k-0"]),
        ([(RequestCode.HEART_BEAT, 1, A), (RequestCode.HEART_BEAT, 1, A)], []),
        ([(V2, 1, ""), (V2, 1, "")], []),
    ],
)
def test_a_send_just_brought_is_recorded(sends: list[tuple[RequestCode, int, str]], found: list[str]) -> None:
    told = list[object]()
    witness = BrokerWitness(lambda event, **fields: told.append(fields["msg_key"]))
    for code, channel, text in sends:
        request = RemotingCommand.request(code)
        request.ext_fields = {"i" if code == V2 else "properties": text}
        witness.received(SimpleNamespace(id=channel, ended_by_peer=False), request)
    assert told == found


def test_what_slaves_ask_for_and_consumers_send_back_is_recorded() -> None:
    told = list[tuple[object, object, object]]()
    witness = BrokerWitness(lambda _, **fields: told.append((fields["f"], fields["op_id"], fields["value"])))
    back = RemotingCommand.request(RequestCode.CONSUMER_SEND_MSG_BACK)
    back.ext_fields = {"group": "g", "delayLevel": "0", "maxReconsumeTimes": "16", "offset": "7"}
    for request in (RemotingCommand.request(RequestCode.GET_ALL_DELAY_OFFSET), back):
        witness.received(SimpleNamespace(id=3, ended_by_peer=False), request)
    assert told == [
        ("GET_ALL_DELAY_OFFSET", "3", None),
        ("CONSUMER_SEND_MSG_BACK", "3", {"group": "g", "level": "0", "limit": "16"}),
    ]
