"""Workloads: the programs that use the cluster while faults happen, and record what they saw."""
