"""Remoting over connections: `RemotingServer` listens, `RemotingClient` connects, a `Connection` is one channel of
either. The parts are connection.py (one channel and its limits), server.py and client.py."""

from .client import RemotingClient
from .connection import Connection, FastPath, Handler
from .server import RemotingServer

__all__ = ["Connection", "FastPath", "Handler", "RemotingClient", "RemotingServer"]
