"""Apache's own servers and clients as nodes. The node's process runs the JVM as its child, the fronts (proxies that
observe frames), and the recorder.

peers ─► proxy ─► server front at the node's address ─► JVM          frames are decoded into rows of the history
                  client front, one for each peer   ◄─ JVM connects   and passed on through the node's own links

`distribution.py` says which programs and where from, `jvm.py` runs them, `server.py` makes a node of a NameServer or
broker (docs/apache.md).
"""
