"""One experiment on many hosts: which host runs each node, and the harness's objects on each host, called through the
host's agent (actors/).
"""
