"""What is understood and bears nothing for who reads an incident: it is counted, and no event comes of it."""

from __future__ import annotations

SHAPES: tuple[tuple[str, str], ...] = (
    ("statistics", r"\[[A-Z0-9_]+\] (?:\[.*\] )?Stats In One (?:Minute|Hour|Day).*"),
    ("statistics", r"\[[A-Z0-9_]+\] (?:TotalPut|put_tps|get_found_tps|transferred_tps).*"),
    ("statistics", r"Port: \d+, (?:Request|Response)Code Distribution: .*"),
    ("statistics", r"findPutMessageEntireTimePX .*"),
    ("statistics", r"dispatch behind commit log -?\d+ bytes"),
    ("statistics", r"Slave fall behind master: -?\d+ bytes"),
    ("housekeeping", r"\[persistAll\] Group: .* updateConsumeOffsetToBroker .*"),
    ("housekeeping", r"updateTopicPublishInfo prev is not null, .*"),
    ("housekeeping", r"HeartbeatData \[clientID=.*"),
    ("housekeeping", r"Try to (?:start|shutdown) service thread:.*"),
    ("housekeeping", r"Begin to check prepare message, .*"),
    ("housekeeping", r"End to check prepare message, .*"),
    ("housekeeping", r"Before check, the queue=.*"),
    ("housekeeping", r"No new message\. GetMessageStatus=.*"),
    ("housekeeping", r"The miss op offset=.*"),
    ("housekeeping", r"subscription changed, group: .*"),
    ("housekeeping", r"registerConsumer info changed .*"),
    ("housekeeping", r"Start service thread:.*"),
    ("housekeeping", r"instrumented a special java\.util\.Set into: .*"),
    ("housekeeping", r"Server is running in TLS .*"),
    ("housekeeping", r"Tls config file doesn't exist, skip it"),
    ("housekeeping", r"Log the final used tls related configuration"),
    ("housekeeping", r"Using JDK SSL provider"),
    ("housekeeping", r"SSLContext created for (?:server|client)"),
    ("housekeeping", r"Unknown channel option .*"),
    ("housekeeping", r"doRebalance, .*, add a new pull request .*"),
    ("housekeeping", r"skip revive topic because .*"),
    ("service_started", r"\S+ service started"),
)

QUIET = frozenset(event for event, _ in SHAPES) | {"watermark"}

COUNTED = frozenset({"scanned", "topic_removed"})
"""One event stands for a run of them; of `topic_removed` those of a topic that had no row there."""
