"""Part of timers_kept: who drops a peer for its silence closes the peer's channel, and reads nothing from it any more;
and a broker whose channel to a client ended, or where the client unregistered, has nothing of this client left to drop.

| who          | drops                             | and reads there no more | upstream                              |
|--------------|-----------------------------------|-------------------------|---------------------------------------|
| a NameServer | a broker: of its last             | request_read            | RouteInfoManager.scanNotActiveBroker  |
|              | registration                      |                         |                                       |
| a broker     | a client: of its heartbeat        | client_heartbeat        | ConsumerManager, ProducerManager:     |
|              |                                   |                         | scanNotActiveChannel                  |
"""

from collections.abc import Iterable, Iterator

from ...verdict import Finding
from ..findings import of_many
from ..record.received import received
from ..record.timer_acts import Process

CHANNEL = "channel of an expired peer"


class ExpiredChannels(Process):
    """Those of one process of a NameServer or a broker."""

    def findings(self) -> Iterator[Finding]:
        expired, read = self._at_broker() if self.kind == "broker" else self._at_name_server()
        ended = {channel: at_ms for at_ms, channel in expired}
        if ended:
            wrong = [at_ms for at_ms, channel in read if at_ms > ended.get(channel, at_ms)]
            span, row = (min(ended.values()), self.end_ms), "a scan closes the channel of each peer that it drops"
            yield of_many((self.life.node, CHANNEL), "is closed", span, row, len(ended) + len(wrong), wrong)
        if self.kind == "broker":
            yield from self._left()

    def _left(self) -> Iterator[Finding]:
        left, twice = dict[str, float](), list[float]()
        for row in self.control.rows("client_heartbeat", "client_gone"):
            channel = str(row.op_id)
            if row.process != self.process:
                continue
            if row.event == "client_heartbeat":
                left.pop(channel, None)
            elif channel in left:
                twice.append(row.time_ms)
            elif row.f != "expired":  # then each group of the channel has a row
                left[channel] = row.time_ms
        if left:
            rule, span = "ProducerManager, ConsumerManager: doChannelCloseEvent", (min(left.values()), self.end_ms)
            yield of_many((self.life.node, CHANNEL), "has no client", span, rule, len(left) + len(twice), twice)

    def _at_name_server(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        of = received(self.control, self.world)
        routes = of.routes(self.life)
        read = ((one.at_ms, one.channel) for one in of.requests(self.life) if one.f.isupper())
        return (() if routes is None else routes.expired), read

    def _at_broker(self) -> tuple[Iterable[tuple[float, str]], Iterable[tuple[float, str]]]:
        gone = ((run.ended_ms, str(run.row.op_id)) for run in self.rows("client_gone") if run.row.f == "expired")
        return gone, ((run.ended_ms, str(run.row.op_id)) for run in self.rows("client_heartbeat"))
