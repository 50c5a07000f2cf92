"""Expected: who must, may and must not do what, and until when, from RocketMQ's timers and the faults.

Plain Python, no Spark.
"""
