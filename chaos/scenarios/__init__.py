"""Scenarios: the model of their YAML, and nemesrv's own scenarios."""
