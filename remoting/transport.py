"""Remoting over connections: `RemotingServer` listens, `RemotingClient` connects, a `Connection` is one channel of
either."""

from .client import RemotingClient
from .connection import Connection, FastPath, Handler
from .server import RemotingServer

__all__ = ["Connection", "FastPath", "Handler", "RemotingClient", "RemotingServer"]
