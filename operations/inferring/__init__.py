"""Infers the faults that explain rows read from logs: signs, candidates, fits, ranking."""
