"""One experiment on many hosts: which node is where, and what the harness has on each through its agent (actors/)."""
