"""What a broker's transport records of sends, whatever the broker makes of them."""

from types import SimpleNamespace

import pytest

from nemesrv.remoting.codes import RequestCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.witness import SendWitness

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
    witness = SendWitness(lambda event, **fields: told.append(fields["msg_key"]))
    for code, channel, text in sends:
        request = RemotingCommand.request(code)
        request.ext_fields = {"i" if code == V2 else "properties": text}
        witness.received(SimpleNamespace(id=channel, ended_by_peer=False), request)
    assert told == found
