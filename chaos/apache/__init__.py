"""Apache's own servers and clients as nodes: the JVM is the child of the node's process, which has fronts and recorder.

peers ─► proxy ─► server front at the node's address ─► JVM          what passes is decoded: rows of the history
                  dialler front, one for each peer   ◄─ JVM dials    and on through the node's own links

`distribution.py` says which programs and where from, `jvm.py` runs them, `server.py` makes a node of a NameServer or
broker (docs/apache.md).
"""
