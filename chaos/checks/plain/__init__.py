"""Verdicts without Spark, of a history that fits into memory: what a check gathers, counted row by row."""
