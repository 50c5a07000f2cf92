"""Benchmarks, each beside its baseline in the same run."""
