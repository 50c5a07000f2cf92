"""RocketMQ's settings by RocketMQ's names: the catalogue, and the values of a scenario's `config:`. The oracle takes
its timers from these settings, and the experiment takes each node's configuration."""
