"""Apache's own integration tests (rocketmq-test 4.9.7), run at our NameServer and brokers."""
