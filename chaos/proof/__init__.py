"""Proves that every check can fail: planted defects, the self-test, worked incidents; and compares runs."""
