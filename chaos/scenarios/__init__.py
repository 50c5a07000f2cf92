"""Scenarios: the model of their YAML, and the scenarios that ship with nemesrv."""
