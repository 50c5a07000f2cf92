"""The transport of remoting: `RemotingServer` listens, `RemotingClient` connects, and a `Connection` is one channel."""

from .client import RemotingClient
from .connection import Connection, FastPath, Handler
from .server import RemotingServer

__all__ = ["Connection", "FastPath", "Handler", "RemotingClient", "RemotingServer"]
