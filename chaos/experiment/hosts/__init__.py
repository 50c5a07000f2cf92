"""One experiment on many hosts: the placement of nodes, and the harness's parts on each host, reached through its agent
(actors/).
"""
