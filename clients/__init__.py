"""What a user of RocketMQ holds: producer, push consumer, admin calls, and the choice of a NameServer."""
