"""RocketMQ's clients from their registries, each with one small driver for `nemesrv conform`."""
