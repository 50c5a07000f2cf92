"""Scenarios: the YAML model, and the experiments that ship with nemesrv."""
