"""Connections, as each end writes of them: any server, and what dials (clients; brokers in their remoting.log)."""

from __future__ import annotations

CHANNEL = r"(?:(?:channel ?)?\[addr=(?P<address>[^,\]]*)[^\]]*\]|\[?(?P<address_>[^\s\],]+)\]?)"
"""The other end of a connection: `10.0.0.9:9876`, `[10.0.0.9:9876]`, `channel[addr=10.0.0.9:9876, id=…]`, `null`."""

SERVER, CLIENT = "NETTY SERVER PIPELINE: ", "NETTY CLIENT PIPELINE: "


SHAPES: tuple[tuple[str, str], ...] = (
    ("channel_registered", rf"{SERVER}channelRegistered (?P<address>\S+)"),
    ("channel_unregistered", rf"{SERVER}channelUnregistered, the channel ?\[(?P<address>[^\]]*)\]"),
    ("channel_active", rf"{SERVER}channelActive, the channel ?\[(?P<address>[^\]]*)\]"),
    ("channel_inactive", rf"{SERVER}channelInactive, the channel ?\[(?P<address>[^\]]*)\]"),
    ("channel_idle", rf"{SERVER}IDLE exception \[(?P<address>[^\]]*)\]"),
    ("channel_error", rf"{SERVER}exceptionCaught exception\."),
    ("channel_failed", rf"{SERVER}exceptionCaught (?!exception\.)(?P<address>\S+)"),
    (
        "channel_closing",
        rf"closeChannel: close the connection to remote address ?{CHANNEL} result: (?P<result>\w+)",
    ),
    ("decode_failed", r"decode exception, (?P<address>\S+).*"),
    (
        "answer_unmatched",
        r"receive response, (?:cmd=(?P<command>.*), ?)?but not matched any request, "
        r"(?:address=)?(?P<address>[^\s,]+).*",
    ),
    # What dials
    ("connecting", r"createChannel: begin to connect remote host ?\[(?P<address>[^\]]*)\] asynchronously"),
    ("connected", r"createChannel: connect remote host ?\[(?P<address>[^\]]*)\] success.*"),
    ("connect_failed", r"createChannel: connect remote host ?\[(?P<address>[^\]]*)\] failed(?:, ?(?P<why>.*))?"),
    ("connect_timeout", r"createChannel: connect remote host ?\[(?P<address>[^\]]*)\] timeout (?P<timeout_ms>\d+)ms.*"),
    ("connected", rf"{CLIENT}ACTIVE, (?P<address>[^\s,]+).*"),
    ("dialled", rf"{CLIENT}CONNECT +(?P<local>\S+) => (?P<address>\S+)"),
    ("disconnected", rf"{CLIENT}DISCONNECT {CHANNEL}.*"),
    ("closed", rf"{CLIENT}CLOSE {CHANNEL}.*"),
    ("closed", rf"{CLIENT}CLOSE ?"),
    ("inactive", rf"{CLIENT}channelInactive, the {CHANNEL}.*"),
    ("idle", rf"{CLIENT}IDLE exception {CHANNEL}.*"),
    ("dialled_error", rf"{CLIENT}exceptionCaught exception\."),
    ("dialled_failed", rf"{CLIENT}exceptionCaught (?!exception\.){CHANNEL}.*"),
    ("close_begun", rf"closeChannel: begin close the channel ?{CHANNEL} Found: (?P<found>\w+)"),
    ("channel_forgotten", rf"closeChannel: the channel ?{CHANNEL} was removed from channel table"),
    (
        "channel_forgotten_before",
        rf"(?P<by>closeChannel|eventCloseChannel): the channel ?{CHANNEL} has been removed from the channel table "
        r"before.*",
    ),
    (
        "channel_made_again",
        rf"closeChannel: the channel ?{CHANNEL} has been closed before, and has been created again, nothing to do\.?",
    ),
    ("request_timeout", rf"invokeSync: wait response timeout exception, the (?:channel)?{CHANNEL}.*"),
    ("closed_on_timeout", rf"invokeSync: close socket because of timeout, (?P<timeout_ms>\d+)ms, {CHANNEL}.*"),
    ("request_failed", rf"invoke(?:Sync|Async|Oneway): send request exception, so close the (?:channel)?{CHANNEL}.*"),
    (
        "write_failed",
        r"(?:write )?send a request command to channel </?(?P<address>[^>]*)>(?:,? ?channelId=\S+)? "
        r"(?:failed\.?|Exception)",
    ),
    ("write_failed", r"send a request command to channel channel ?\[addr=(?P<address>[^,\]]*)[^\]]*\] failed\.?"),
    (
        "name_server_silent",
        r"\[SCAN\] No response after (?P<after>\S+) from name server (?P<address>[^\s,]+), so close it!",
    ),
    ("answer_late", r"remove timeout request, ResponseFuture ?\[(?P<future>.*)\]"),
)
