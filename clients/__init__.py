"""RocketMQ's clients: producer, push consumer, admin calls, and the choice of a NameServer."""
