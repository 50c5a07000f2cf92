"""What a controller says of itself (controller.log), by DLedger from 5.0 and by JRaft from 5.2."""

from __future__ import annotations

_WHO = r"(?:.*?brokerName='?(?P<broker>[^',}]+)'?.*?brokerId[=:] ?(?P<id>-?\d+|null).*)"

SHAPES: tuple[tuple[str, str], ...] = (
    ("controller_led", r"Controller (?P<who>\S+) change role to (?P<role>leader), try process a initial proposal"),
    ("controller_led", r"Controller start leadership, term: (?P<term>\d+)\."),
    ("controller_followed", r"Controller (?P<who>\S+) change role to (?P<role>[Ff]ollower|candidate).*"),
    ("controller_followed", r"Controller (?P<who>\S+) stop leadership, status: .*"),
    ("controller_started", r"Controller (?P<who>\S+) (?P<what>started|stopped)\."),
    (
        "controller_heard",
        rf"new broker registered, (?:brokerIdentityInfo: )?(?:BrokerIdentityInfo|BrokerAddrInfo){_WHO}",
    ),
    ("controller_heard", r"new broker registered, (?P<broker>(?!.* HAS(?:erver|ervice): ).*), brokerId:(?P<id>-?\d+)"),
    ("controller_lost", rf"The broker channel .*? expired, brokerInfo {_WHO}"),
    ("controller_lost", rf"Broker expired, brokerInfo {_WHO}"),
    ("controller_lost", r"Broker (?P<cluster>\S+?)-(?P<broker>\S+)-(?P<id>-?\d+) inactive"),
    ("controller_lost", rf"Channel .* inactive, broker (?:identity info: )?{_WHO}"),
    ("controller_lost", r"Channel .* inactive, broker (?P<broker>[^,]+), addr:(?P<address>[^,]*), id:(?P<id>-?\d+)"),
    ("controller_lost", r"The broker with brokerId: (?P<id>-?\d+) in broker-set: (?P<broker>\S+) has been inactive"),
    ("controller_lost", r"Controller Manager received broker inactive event, .*brokerName: (?P<broker>[^,]+), .*"),
    ("controller_elected", r"Elect a new master in broker-set: (?P<broker>\S+) done, result: ?(?P<result>.*)"),
    ("controller_elected", r"Broker (?P<broker>\S+)'s master (?P<old>\S+) shutdown, elect a new master done, .*"),
    ("controller_elected", r"Elect new master (?P<address>\S+) for broker (?P<broker>\S+)"),
    ("controller_elected", r"elect master, request :(?P<request>.*?), result: (?P<result>.*)"),
    ("controller_unelected", r"Failed to (?:trigger elect-master in broker-set:|elect a new master for broker) .*"),
    ("controller_told", r"Try notify broker (?P<broker>\S+) .*that role changed, .*"),
)
