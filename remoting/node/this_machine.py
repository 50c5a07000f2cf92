"""The context of a node that runs without a harness."""

import logging
import random

from .clock import RealClock
from .network import TcpNetwork
from .node import LOG, NodeContext


def on_this_machine(name: str, log: logging.Logger = LOG) -> NodeContext:
    """The context of a program that a person runs: this machine's clock and sockets, and randomness without a seed."""
    return NodeContext(name=name, clock=RealClock.starting_now(), network=TcpNetwork(), rng=random.Random(), log=log)
