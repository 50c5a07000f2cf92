"""What several shapes have in them."""

from __future__ import annotations

ADDRESS = (
    r"(?:BrokerIdentityInfo ?\[clusterName=(?P<cluster>[^,\]]*), ?brokerAddr=(?P<address>[^\]]*)\]|(?P<address_>\S+))"
)
"""A broker as a NameServer calls it: 5.x names the cluster, too."""

RESULT = r"(?P<result>OK|Failed)"

WHY = ", because channel destroyed"

CHANNEL = r"(?:(?:channel ?)?\[addr=(?P<address>[^,\]]*)[^\]]*\]|\[?(?P<address_>[^\s\],]+)\]?)"
"""The other end of a connection: `10.0.0.9:9876`, `[10.0.0.9:9876]`, `channel[addr=10.0.0.9:9876, id=…]`, `null`."""

SERVER, CLIENT = "NETTY SERVER PIPELINE: ", "NETTY CLIENT PIPELINE: "
