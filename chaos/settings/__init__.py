"""RocketMQ's settings by RocketMQ's names: the one catalogue, and what a scenario's `config:` makes of it.

No node is made here; the oracle asks for timers, the experiment for the fields of a node's own configuration.
"""
