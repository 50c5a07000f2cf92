"""A client in the standard library alone, which starts in 20 ms: asks the first NameServer for a route again and again.

python -I -S tiny.py HOST:PORT;… TOPIC [PERIOD_S]
"""

import json
import socket
import struct
import sys
import time


def asked(channel: socket.socket, opaque: int, topic: str) -> int:
    """The response code to GET_ROUTEINFO_BY_TOPIC."""
    request = {
        "code": 105,
        "language": "OTHER",
        "version": 0,
        "opaque": opaque,
        "flag": 0,
        "extFields": {"topic": topic},
    }
    header = json.dumps(request).encode()
    channel.sendall(struct.pack("!ii", 4 + len(header), len(header)) + header)
    (size,) = struct.unpack("!i", channel.recv(4, socket.MSG_WAITALL))
    answer = channel.recv(size, socket.MSG_WAITALL)
    return int(json.loads(answer[4 : 4 + int.from_bytes(answer[1:4], "big")])["code"])


def main(addresses: str, topic: str, period_s: str = "0.1") -> None:
    host, port = addresses.split(";")[0].split(":")
    with socket.create_connection((host, int(port))) as channel:
        print('{"f": "started"}', flush=True)
        for opaque in range(1_000_000):
            code = asked(channel, opaque, topic)
            print(f"answered with code {code}", flush=True)
            time.sleep(float(period_s))


if __name__ == "__main__":
    main(*sys.argv[1:])
