"""What every node is handed: clock, network, recorder and the profile of RocketMQ that it speaks."""
