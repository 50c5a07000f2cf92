"""Apache's own servers and clients as nodes. A node's process has the fronts (proxies that observe frames) and the
recorder in it, and the JVM as its child.

peers ─► proxy ─► server front at the node's address ─► JVM          frames are decoded into rows of the history
                  client front, one for each peer   ◄─ JVM connects   and passed on through the node's own links

`distribution.py` finds Apache's programs and their jars. `jvm.py` runs a Java program. `server.py` makes a NameServer
or broker a node (docs/apache.md).
"""
