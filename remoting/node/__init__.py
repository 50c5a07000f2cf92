"""What every node uses: clock, network, recorder, and the profile of the RocketMQ version that the node follows."""
