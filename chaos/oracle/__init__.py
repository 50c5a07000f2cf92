"""The expected behaviour: what each node must, may and must not do, and until when, computed from RocketMQ's timers and
the faults. Plain Python, no Spark."""
