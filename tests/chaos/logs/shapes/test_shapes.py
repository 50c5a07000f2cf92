"""Each text that a program of RocketMQ's writes, of 4.9 and of 5.x, is the event that it tells of, with its fields."""

from itertools import chain

import pytest

from nemesrv.chaos.logs.shapes import COUNTED, QUIET, SHAPES, edited_event_of, event_of, go_event_of, setting_of
from tests.chaos.logs.shapes.texts import TEXTS

CLIENTS = TEXTS["clients"]


@pytest.mark.parametrize(
    ("text", "event", "fields"), [*chain(*TEXTS["servers"].values()), *CLIENTS["java"], *CLIENTS["others"]]
)
def test_a_text_is_the_event_that_it_tells_of(text: str, event: str, fields: dict[str, str]) -> None:
    found = event_of(text)
    assert found is not None
    assert found[0] == event
    assert fields.items() <= found[1].items()


@pytest.mark.parametrize(("text", "event", "fields"), CLIENTS["go"])
def test_a_message_of_go_has_its_values_as_fields(text: str, event: str, fields: dict[str, str]) -> None:
    found = go_event_of(text)
    assert found is not None
    assert found[0] == event
    assert fields.items() <= found[1].items()


@pytest.mark.parametrize("text", CLIENTS["quiet"])
def test_what_bears_nothing_is_understood_and_quiet(text: str) -> None:
    found = event_of(text)
    assert found is not None
    assert found[0] in QUIET


@pytest.mark.parametrize("text", ["kvConfigPath=/root/namesrv/kvConfig.json", "remove brokerAddr[", "", "the", "[x] y"])
def test_a_text_of_no_known_shape_is_none(text: str) -> None:
    assert event_of(text) is None


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("listenPort=9876", "listenPort", "9876"),
        ("tls.server.keyPath = null", "tls.server.keyPath", "null"),
        ("a=", "a", ""),
    ],
)
def test_a_setting_is_its_key_and_value(text: str, key: str, value: str) -> None:
    assert setting_of(text) == ("setting", {"key": key, "value": value})


def test_every_event_that_is_counted_is_one() -> None:
    assert {event for event, _ in SHAPES} >= QUIET | COUNTED


CUT = {
    "new broker registered, 10.0.0.1:10911 HASer": ("broker_registered", {"address": "10.0.0.1:10911"}),
    "the topic[T] route info changed, old[null] ,new[TopicRouteData [orde...": ("route_changed", {"topic": "T"}),
    "new name server is chosen. OLD: 10.0.0.9:9876 , NEW: 10.0.0.8:98": (
        "name_server_chosen",
        {"old": "10.0.0.9:9876"},
    ),
    "remove topic[T QueueData [brokerName=broker-a, readQ…": ("topic_removed", {"topic": "T"}),
}


@pytest.mark.parametrize("text", CUT)
def test_a_cut_line_says_what_is_whole_in_it(text: str) -> None:
    event, fields = CUT[text]
    assert event_of(text) is None
    assert edited_event_of(text) == (event, fields | {"cut": "true"})


@pytest.mark.parametrize(
    "text",
    ["new broker registered, 10.0.0.1:109", "The broker channel expired, 10.0", "new broker regis", "the broker"],
)
def test_half_an_address_is_none(text: str) -> None:
    assert edited_event_of(text) is None


def test_spaces_too_many_are_no_matter() -> None:
    text = "  register  broker[0]  to name  server 10.0.0.9:9876   OK "
    event, fields = edited_event_of(text) or ("", {})
    assert (event, fields["id"], fields["name_server"]) == ("registered", "0", "10.0.0.9:9876")
