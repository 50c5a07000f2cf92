"""The digest that tells whether a message came as it was sent."""

from nemesrv.remoting.message_properties import message_digest

SENT = {"KEYS": "k-1", "TAGS": "a", "UNIQ_KEY": "7F", "number": "1", "WAIT": "true"}

OF_THE_PRODUCER = ("KEYS", "TAGS", "UNIQ_KEY", "number")


def test_what_clients_and_brokers_add_on_its_way_changes_nothing() -> None:
    came = {"MIN_OFFSET": "0", "CLUSTER": "c", "UNIQ_KEY": "7F", "number": "1", "TAGS": "a", "KEYS": "k-1"}
    assert message_digest("orders", b"body", came) == message_digest("orders", b"body", SENT)


def test_another_topic_body_key_tag_or_property_gives_another_digest() -> None:
    changed = [{**SENT, name: "other"} for name in OF_THE_PRODUCER]
    lost = [{n: v for n, v in SENT.items() if n != name} for name in OF_THE_PRODUCER]
    digests = {message_digest("orders", b"body", properties) for properties in [SENT, *changed, *lost]}
    assert len(digests | {message_digest("orders", b"bodY", SENT)}) == 10
    assert message_digest("payments", b"body", SENT) not in digests
