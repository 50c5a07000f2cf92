"""Infers the faults that explain the rows of a history, such as rows read from logs, and ranks the explanations."""
