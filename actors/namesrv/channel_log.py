"""A NameServer's lines about its channels, in RocketMQ's own words. Upstream: `NettyConnectManageHandler`."""

from __future__ import annotations

import logging

from ...remoting.transport import Connection

_PIPELINE = "NETTY SERVER PIPELINE: "


class ChannelLog:
    def __init__(self, log: logging.Logger) -> None:
        self._log = log

    def opened(self, connection: Connection) -> None:
        address = connection.remote_address
        self._log.info(_PIPELINE + "channelRegistered %s", address)
        self._log.info(_PIPELINE + "channelActive, the channel[%s]", address)

    def closing(self, connection: Connection) -> None:
        """This NameServer closes it, for a reason of its own."""
        address = connection.remote_address
        self._log.info("closeChannel: close the connection to remote address[%s] result: true", address)

    def closed(self, connection: Connection, reason: str) -> None:
        """`reason` as the transport gives it: closed, exception or idle."""
        address = connection.remote_address
        if reason == "idle":
            self._log.warning(_PIPELINE + "IDLE exception [%s]", address)
        elif reason == "exception":
            self._log.warning(_PIPELINE + "exceptionCaught %s", address)
        if reason in ("idle", "exception"):
            self.closing(connection)
        self._log.info(_PIPELINE + "channelInactive, the channel[%s]", address)
        self._log.info(_PIPELINE + "channelUnregistered, the channel[%s]", address)
