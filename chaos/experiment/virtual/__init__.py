"""The whole experiment in one process: a virtual clock, a network in memory, the same node programs."""
