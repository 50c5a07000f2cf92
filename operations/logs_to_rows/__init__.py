"""Turns log lines of servers and clients into rows of a history: writers, times, clocks."""
