"""Proves by planted defects, the self-test and reported incidents that every check can fail; and compares runs."""
