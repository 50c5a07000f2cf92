"""The most expensive single frames that we could think of, each read in a process of its own: CPU time and memory.

A frame holds at most 16 MiB, and JSON that is all brackets takes up to thirty times its size as Python objects. That is
the price of one frame while it is read, not of a connection: frames are read one after the other.
"""

import multiprocessing
import resource
import time
import zlib
from collections.abc import Callable
from multiprocessing.connection import Connection

from nemesrv.remoting import fastjson
from nemesrv.remoting.bodies.register import RegisterBrokerBody
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.frame import FRAME_MAX, decode_frame

CPU_S = 15.0
"""Most CPU time of one frame of 16 MiB, on a slow and busy machine."""
MEMORY_BYTES = 1024 * 1024 * 1024
"""Most memory of one frame of 16 MiB while it is read."""

SIZE = FRAME_MAX - 1024
DIALECT = fastjson.DIALECT_MAX_BYTES


def _filled(before: bytes, unit: bytes, after: bytes, size: int = SIZE) -> bytes:
    return before + unit * ((size - len(before) - len(after)) // len(unit)) + after


def _json_frame(header: bytes) -> bytes:
    return b"".join(((len(header) + 4).to_bytes(4, "big"), len(header).to_bytes(4, "big"), header))


def _registration(field: bytes, count: int) -> bytes:
    entries = b",".join(b'"%x":{}' % number for number in range(count))
    return b'{"topicConfigSerializeWrapper":{"%s":{%s}}}' % (field, entries)


def _binary_frame() -> bytes:
    entries = b"".join(b"\0\3" + n.to_bytes(3, "big") + b"\0\0\0\0" for n in range(SIZE // 9 - 10))
    header = bytes(17) + bytes(4) + len(entries).to_bytes(4, "big") + entries
    return b"".join(((len(header) + 4).to_bytes(4, "big"), b"\1", len(header).to_bytes(3, "big"), header))


def _bomb_of_topics() -> bytes:
    line = b"%07x 1 1 6 SINGLE_TAG"
    lines = b"".join((21 + 1).to_bytes(4, "big") + line % number + b" " for number in range(600_000))
    parts = (b"\0\0\0\2{}", (600_000).to_bytes(4, "big"), lines, b"\0\0\0\2[]")
    return zlib.compress(b"".join(parts), 1)


CASES: dict[str, Callable[[], object]] = {
    "a body of empty lists": lambda: fastjson.loads(_filled(b"[", b"[],", b"0]")),
    "a body of small objects": lambda: fastjson.loads(_filled(b"[", b'{"a":0},', b"0]")),
    "a body of lists in the dialect": lambda: fastjson.loads(_filled(b"['',", b"[],", b"0]", DIALECT)),
    "a body of object keys": lambda: fastjson.loads(_filled(b"[", b"{{a:1}:2},", b"0]", DIALECT)),
    "a body of escapes": lambda: fastjson.loads(_filled(b"'", b"\\x", b"'", DIALECT)),
    "a body of references": lambda: fastjson.loads(_filled(b"[[0,1],", b'{"$ref":"$[0]"},', b"0]", DIALECT)),
    "a header of lists": lambda: decode_frame(_json_frame(_filled(b'{"extFields":{"a":[', b"[],", b"0]}}"))),
    "a header of numbers": lambda: decode_frame(_json_frame(_filled(b'{"extFields":{"a":', b"9", b"}}"))),
    "a ROCKETMQ header of many fields": lambda: decode_frame(_binary_frame()),
    "a registration of many topics": lambda: RegisterBrokerBody.decode(_registration(b"topicConfigTable", 1_300_000)),
    "a registration of as many topics as may be": lambda: RegisterBrokerBody.decode(
        _registration(b"topicConfigTable", 500_000)
    ),
    "a registration of many mappings": lambda: RegisterBrokerBody.decode(
        _registration(b"topicQueueMappingInfoMap", 1_300_000)
    ),
    "a registration of one large mapping": lambda: RegisterBrokerBody.decode(
        _filled(b'{"topicConfigSerializeWrapper":{"topicQueueMappingInfoMap":{"a":{"b":[', b"[],", b"0]}}}}")
    ),
    "a compressed registration of many topics": lambda: RegisterBrokerBody.decode(_bomb_of_topics()),
    "a zip bomb": lambda: RegisterBrokerBody.decode(zlib.compress(bytes(256 * 1024 * 1024), 9)),
}


def measure(name: str) -> tuple[float, int, str]:
    """CPU seconds, bytes of memory beyond the start, and the refusal (empty: it was read), from a fresh process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(name, there))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        raise AssertionError(f"{name}: the process died") from None
    finally:
        process.join()


def _measured(name: str, answer: Connection) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    refusal = ""
    try:
        CASES[name]()
    except RemoteProtocolError as exc:
        refusal = str(exc)
    seconds = time.process_time() - began
    answer.send((seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, refusal))


def main() -> int:
    """Print each; how many were beyond a bound."""
    beyond = 0
    for name in CASES:
        seconds, memory, refusal = measure(name)
        print(f"{name:44}{seconds:6.1f} s{memory >> 20:6} MiB  {refusal[:60]}")
        beyond += seconds > CPU_S or memory > MEMORY_BYTES
    print(f"each within {CPU_S:g} s of CPU time and {MEMORY_BYTES >> 20} MiB" if not beyond else f"{beyond} beyond")
    return beyond
