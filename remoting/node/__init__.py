"""What every node gets: clock, network, recorder, and the profile of RocketMQ that it follows."""
