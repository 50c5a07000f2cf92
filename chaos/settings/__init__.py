"""RocketMQ's settings by RocketMQ's names: the catalogue, and the values of a scenario's `config:`. The oracle gets
timers from here, the experiment the fields of a node's configuration."""
