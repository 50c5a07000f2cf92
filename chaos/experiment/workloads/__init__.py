"""Workloads: programs that use the cluster during faults, and record the results."""
