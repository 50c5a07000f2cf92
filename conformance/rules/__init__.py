"""The rules of a client profile. A rule is one function, whose name is the rule's name and whose docstring says what is
measured.

    choosing    list_order, start, sticky, next
    leaving     leaves_on_…: refused, SYN dropped, silence, close, reset, closed at accept, error codes
    trying      tries of a call, time-outs, phase_lock, failover
    polling     poll_…, list_change_s, storm, back_after_all_gone_s
    brokers     …_broker_s: its last use, or its first; sends_lost, send_stall_s, send_retries
    consumers   queues_of_…_s, received_twice

A new rule is a function with the decorator `@rules` of its file; command, profiles and docs find all rules here.
"""

from collections.abc import Mapping

from . import brokers, choosing, consumers, leaving, polling, trying
from .rule import LeftOut, Measured, Rule

_FILES = (choosing, leaving, trying, polling, brokers, consumers)

RULES: Mapping[str, Rule] = {rule.name: rule for file in _FILES for rule in file.rules}
"""By name, in the order of the output."""

OF_PROGRAM = frozenset(rule.name for file in (brokers, consumers) for rule in file.rules)
"""Rules about brokers, which concern the program as a whole; all others concern each client in it."""

__all__ = ["OF_PROGRAM", "RULES", "LeftOut", "Measured", "Rule"]
