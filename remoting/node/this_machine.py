"""What a program that a person runs is handed, in place of a harness."""

import random

from .clock import RealClock
from .network import TcpNetwork
from .node import NodeContext


def on_this_machine(name: str) -> NodeContext:
    """Of a program that a person runs here: this machine's clock, its sockets, and chance without a seed."""
    return NodeContext(name=name, clock=RealClock.starting_now(), network=TcpNetwork(), rng=random.Random())
