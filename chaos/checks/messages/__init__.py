"""Checks of messages (lost, late, duplicate, out of order) and of consuming."""
