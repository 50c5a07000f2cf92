"""The push consumer: rebalance, pulls, consumption, offsets."""
