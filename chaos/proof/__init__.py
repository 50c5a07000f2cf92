"""Proves by planted defects and by reported incidents that every check can fail, and compares runs."""
