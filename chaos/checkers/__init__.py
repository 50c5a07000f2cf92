"""Checkers: each one pure function from history DataFrames to one verdict."""
