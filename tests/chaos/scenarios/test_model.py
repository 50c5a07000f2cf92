"""Scenario files: what is shipped is sound, and what is wrong is said in one sentence."""

from pathlib import Path

import pytest

from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.faults.acts_by_hand import ByHand
from nemesrv.chaos.faults.clock_changes import ClockAction
from nemesrv.chaos.faults.kinds import ACTIONS
from nemesrv.chaos.faults.link_faults import BlackHole, Heal
from nemesrv.chaos.faults.process_faults import Kill
from nemesrv.chaos.scenarios.loading import find, load, shipped
from nemesrv.chaos.scenarios.model import CHECK_NAMES
from tests.refusals import refusal


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


HEAD = "checks: [routes_converge]\n"
"""What stands for `OK ` in the texts below."""
ALIASES_OF_ALIASES = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{turn}: &a{turn} [{', '.join([f'*a{turn - 1}'] * 9)}]\n" for turn in range(1, 8)
)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_scenario_written_with_its_defaults_loads_as_the_same_scenario(name: str, tmp_path: Path) -> None:
    scenario = find(name)
    assert load(write(tmp_path, scenario.to_yaml())) == scenario
    assert scenario.description


@pytest.mark.parametrize(
    ("text", "key", "value", "allowed"),
    [
        ("OK clustr: {}", "clustr", "{}", "cluster"),
        ("checks: [no_such]", "checks.0", "'no_such'", "routes_converge"),
        ("checks: []", "checks", "[]", "at least 1"),
        ("{}", "checks", "", "required"),
        ("OK cluster: {brokers: 0}", "cluster.brokers", "0", "a whole number from 1 to 26"),
        ("OK cluster: {profile: '6'}", "cluster.profile", "'6'", "one of 4.9, 5.x"),
        ("OK cluster: {bokers: 3}", "cluster.bokers", "3", "name_server_list, name_servers, operator, profile"),
        ("OK timers: {time_scale: 0}", "timers.time_scale", "0", "a number above 0, up to 100"),
        ("OK timeline: [{at_s: 5, do: explode}]", "timeline.0.do", "'explode'", f"one of {', '.join(ACTIONS)}"),
        ("OK timeline: [{at_s: 5, do: kill, nodes: [broker-z]}]", "timeline.0.nodes", "'broker-z'", "broker-a"),
        ("OK timeline: [{at_s: 5, do: kill}]", "timeline.0", "", "needs `nodes`"),
        (
            "OK timeline: [{at_s: 5, do: cut, links: ['broker-a <-> ns-9']}]",
            "timeline.0.links",
            "'broker-a <-> ns-9'",
            "ns-9",
        ),
        ("OK timeline: [{at_s: 9, do: heal}, {at_s: 5, do: heal}]", "timeline.1.at_s", "5", "ascending"),
        ("[1, 2]", "", "list", "mapping"),
        ("a: [", "line", "", "well-formed YAML"),
        ("a: 1\nb:\n\tc: 1", "line 3", "a tab; indent with spaces", ""),
        ("a: 1\n\tb: 1", "line 2", "a tab; indent with spaces", ""),
        ("a: &a [*a]", "line 1", "an alias that contains itself", ""),
        ("a: &a {<<: *a}", "line 1", "an alias that contains itself", ""),
        ("a: " + "[" * 3000 + "]" * 3000, "", "nested too deep", ""),
        ("a: 1\n---\nb: 1", "line 2", "a second document", "one in a file"),
        (ALIASES_OF_ALIASES, "line 6", "with its aliases written out", ""),
        ("timeline:\n" + "- {at_s: 1, do: heal}\n" * 60_000, "", "too long", ""),
        ("OK tmeline: []", "tmeline", "[]", "did you mean timeline?"),
        ("OK cluster: {brokers: yes}", "cluster.brokers", "true", "a whole number from 1 to 26"),
    ],
)
def test_a_wrong_scenario_names_file_key_value_and_what_is_allowed(
    text: str, key: str, value: str, allowed: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text.replace("OK ", HEAD))
    with pytest.raises(ScenarioError) as error:
        load(path)
    assert error.value.file == str(path)
    assert key in error.value.key
    assert value in error.value.value
    assert allowed in error.value.allowed
    assert "\n" not in str(error.value)


def test_bytes_that_are_no_text_and_a_file_that_is_not_there_are_said(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    with pytest.raises(ScenarioError, match=r"mine\.yaml: no such file$"):
        load(path)
    path.write_bytes(b"checks: [routes_converge]\n# \xff")
    with pytest.raises(ScenarioError, match=r"line 2: it is not UTF-8 text \(byte 0xff\)$"):
        load(path)


def test_a_key_that_begins_with_x_may_hold_an_anchor(tmp_path: Path) -> None:
    text = "x-both: &both [ns-0, ns-1]\nchecks: [routes_converge]\ntimeline: [{at_s: 1, do: kill, nodes: *both}]"
    assert load(write(tmp_path, text)).timeline[0].nodes == ("ns-0", "ns-1")


CUT = "links: ['broker-a <-> ns-0']"


@pytest.mark.parametrize(
    ("entry", "key", "value", "allowed"),
    [
        ("{do: cut, LINKS}", "timeline.0.at_s", "", "this key is required"),
        ("{at_s: 5, LINKS}", "timeline.0.do", "", "one of cut, black_hole"),
        (
            "{at_s: 5, do: cut, link: ['broker-a <-> ns-0']}",
            "timeline.0.link",
            "['broker-a <-> ns-0']",
            "one of the keys at_s, do, links, stream",
        ),
        (
            "{at_s: 5, do: cut, latency_ms: 9, LINKS}",
            "timeline.0.latency_ms",
            "9",
            "one of the keys at_s, do, links, stream",
        ),
        ("{at_s: 5, do: latency, latncy_ms: 9, LINKS}", "timeline.0.latncy_ms", "9", "did you mean latency_ms?"),
        (
            "{at_s: 5, do: latency, latency_ms: 9, jiter_ms: 9, LINKS}",
            "timeline.0.jiter_ms",
            "9",
            "one of the keys at_s, do, links, stream, latency_ms, jitter_ms",
        ),
        ("{at_s: 5, do: latency, latency_ms: 0, LINKS}", "timeline.0.latency_ms", "0", "a number above 0"),
        ("{at_s: 5, do: latency, latency_ms: slow, LINKS}", "timeline.0.latency_ms", "'slow'", "a number"),
        ("{at_s: 5, do: bandwidth, rate_kb_s: 2.5, LINKS}", "timeline.0.rate_kb_s", "2.5", "a whole number"),
        (
            "{at_s: 5, do: cut, stream: sideways, LINKS}",
            "timeline.0.stream",
            "'sideways'",
            "one of both, upstream, downstream",
        ),
        ("{at_s: 5, do: cut}", "timeline.0", "", "`do: cut` needs `links`, e.g. links: [broker-a <-> ns-0]"),
        ("{at_s: 5, do: cut, nodes: [broker-a]}", "timeline.0", "", "needs `links`"),
        ("{at_s: 5, do: cut, nodes: [broker-a], LINKS}", "timeline.0", "", "acts on links, not on nodes"),
        ("{at_s: 5, do: kill, nodes: [broker-a], LINKS}", "timeline.0", "", "`do: kill` takes no links"),
        ("{at_s: 5, do: heal, LINKS}", "timeline.0.links", "broker-a <-> ns-0", "links that a fault is on"),
        ("{at_s: 5, do: heal, nodes: [broker-a]}", "timeline.0", "", "`do: heal` acts on links, not on nodes"),
        ("{at_s: 5, do: heal, faults: [east]}", "timeline.0.faults.0", "east", "lasts then (none does)"),
        ("{at_s: 5, do: kill, name: east, nodes: [broker-a]}", "timeline.0", "", "`do: kill` takes no name"),
        ("{at_s: 5, do: kill, nodes: broker-a}", "timeline.0.nodes", "'broker-a'", "a list"),
        ("{at_s: 5, do: cut, links: null}", "timeline.0.links", "None", "a list"),
        ("{at_s: 5, do: kill, nodes: [1]}", "timeline.0.nodes.0", "1", "text"),
        ("{at_s: soon, do: heal}", "timeline.0.at_s", "'soon'", "a number"),
        ("heal", "timeline.0", "'heal'", "a mapping of keys to values"),
    ],
)
def test_what_is_wrong_with_an_entry_of_the_timeline_is_said_with_what_its_do_allows(
    entry: str, key: str, value: str, allowed: str, tmp_path: Path
) -> None:
    with pytest.raises(ScenarioError) as error:
        load(write(tmp_path, f"{HEAD}timeline: [{entry.replace('LINKS', CUT)}]"))
    assert error.value.key == key
    assert value in error.value.value
    assert allowed in error.value.allowed


@pytest.mark.parametrize("key", ["timeline", "cluster", "checks", "workload", "name"])
@pytest.mark.parametrize("value", ["null", "3", "[{}]", "true"])
def test_no_sentence_speaks_of_python_types(key: str, value: str, tmp_path: Path) -> None:
    text = {"checks": "[routes_converge]", key: value}
    with pytest.raises(ScenarioError) as error:
        load(write(tmp_path, "\n".join(f"{name}: {said}" for name, said in text.items())))
    assert not any(word in error.value.allowed for word in ("tuple", "NoneType", "dictionary", "instance", "string"))


@pytest.mark.parametrize("do", ACTIONS)
def test_an_entry_written_with_its_defaults_has_the_keys_of_its_do_and_no_others(do: str, tmp_path: Path) -> None:
    numbers = {
        **{"latency": "latency_ms: 5, ", "bandwidth": "rate_kb_s: 5, "},
        **{"register": "broker: broker-x, address: broker-a, ", "unregister": "broker: broker-a, "},
        **{"update_topic": "topic: t, ", "delete_topic": "topic: t, "},
        **{"wipe_write_perm": "broker: broker-a, ", "add_write_perm": "broker: broker-a, "},
        **{"clock_step": "by_s: 5, ", "clock_drift": "rate: 2, "},
        "update_config": "settings: {autoCreateTopicEnable: true}, ",
        "name_server_list": "name_servers: [ns-0]",
    }.get(do, "")
    node = "ns-0" if do == "remove" else "broker-a"
    targets = {"links": CUT, "nodes": f"nodes: [{node}]", "hosts": "hosts: [b]", "": ""}[ACTIONS[do].acts_on]
    if issubclass(ACTIONS[do], ClockAction) or (issubclass(ACTIONS[do], ByHand) and "broker" not in ACTIONS[do].asks):
        targets = "nodes: [ns-0]"
    before = {"resume": "{at_s: 1, do: pause, nodes: [broker-a]}, ", "heal": f"{{at_s: 1, do: cut, {CUT}}}, "}.get(
        do, ""
    )
    if do == "clock_sync":
        before = "{at_s: 1, do: clock_freeze, nodes: [ns-0]}, "
    if do == "free_disk":
        before = "{at_s: 1, do: fill_disk, nodes: [broker-a]}, "
    if do == "return_host":
        before = "{at_s: 1, do: lose_host, hosts: [b]}, "
    cluster = "cluster: {name_server_list: [ns-0]}" if do == "name_server_list" else ""
    if ACTIONS[do].acts_on == "hosts":
        cluster = "placement: {hosts: [a, b]}"
    if do == "switch":
        cluster, targets = "cluster: {slaves: 1}", "nodes: [broker-a/1]"
        before = "{at_s: 1, do: kill, nodes: [broker-a]}, "
    timeline = f"timeline: [{before}{{at_s: 5, do: {do}, {numbers}{targets}}}]"
    scenario = load(write(tmp_path, f"checks: [routes_converge]\n{cluster}\n{timeline}"))
    entry = scenario.model_dump(mode="json")["timeline"][-1]
    # a heal says either what it heals by name, or which links; a restart whose program it is, and that it moves
    said = set(ACTIONS[do].model_fields) - {"faults", "implementation", "new_address"}
    assert set(entry) == {"at_s", "do", *said, *filter(None, [ACTIONS[do].acts_on])}
    assert load(write(tmp_path, scenario.to_yaml())) == scenario


def test_a_scenario_of_an_earlier_version_with_every_key_at_every_entry_still_loads(tmp_path: Path) -> None:
    rest = "stream: both, latency_ms: null, jitter_ms: 0.0, rate_kb_s: null"
    text = f"""checks: [routes_converge]
timeline:
  - {{at_s: 5, do: black_hole, links: [broker-a <-> ns-0], nodes: [], {rest}}}
  - {{at_s: 9, do: kill, links: [], nodes: [broker-a], {rest}}}
  - {{at_s: 20, do: heal, links: [], nodes: [], {rest}}}
"""
    entries = load(write(tmp_path, text)).timeline
    assert [entry.what for entry in entries] == [BlackHole(), Kill(), Heal()]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            HEAD + "settle_s: 10\nsettle_s: 20",
            "line 3, column 1: a second `settle_s:` is not allowed; expected each key once",
        ),
        (HEAD + "timeline: [{at_s: true, do: heal}]", "timeline.0.at_s: true is not allowed; expected a number from 0"),
        (
            HEAD + "workload: {producers: no}",
            "workload.producers: false is not allowed; expected a whole number from 0",
        ),
        (HEAD + "clustr: {}", "did you mean cluster?"),
        ("checks: [route_converge]", "did you mean routes_converge?"),
        (HEAD + "timeline: [{at_s: 5, do: blackhole, links: ['*']}]", "did you mean black_hole?"),
        (HEAD + "timeline: [{at_s: 5, do: kill, nodes: [broker_a]}]", "did you mean broker-a?"),
        (
            HEAD + "timeline: [{at_s: 5, do: kill, nodes: [broker-a]}, {at_s: 9, do: kill, nodes: [broker-a]}]",
            "kill of broker-a at 9 s is not allowed; expected restart before it: broker-a is under kill since 5 s",
        ),
        (
            HEAD + "timeline: [{at_s: 5, do: stop, nodes: [ns-0]}, {at_s: 9, do: resume, nodes: [ns-0]}]",
            "resume of ns-0 at 9 s is not allowed; expected a node that is paused then",
        ),
        (
            HEAD + "timeline: [{at_s: 5, do: pause, nodes: [ns-0]}, {at_s: 9, do: restart, nodes: [ns-0]}]",
            "restart of ns-0 at 9 s is not allowed; expected resume: it is paused then",
        ),
    ],
)
def test_what_yaml_would_let_pass_and_what_cannot_happen_is_found_in_the_file(
    tmp_path: Path, text: str, says: str
) -> None:
    with refusal(says):
        load(write(tmp_path, text))


def test_a_node_may_be_hit_again_when_it_is_back_and_a_running_one_restarted(tmp_path: Path) -> None:
    steps = [("kill", 5), ("restart", 9), ("pause", 12), ("resume", 20), ("restart", 30), ("stop", 40)]
    lines = [f"- {{at_s: {at_s}, do: {do}, nodes: [broker-a]}}" for do, at_s in steps]
    scenario = load(write(tmp_path, HEAD + "workload: {ordered: true}\ntimeline:\n" + "\n".join(lines)))
    assert [step.do for step in scenario.timeline] == [do for do, _ in steps]


def test_the_nearest_name_is_suggested_by_the_command_too() -> None:
    with pytest.raises(ScenarioError, match=r"did you mean broker-partition\?"):
        find("broker-partiton")


def test_checks_all_are_all_checks_there_are(tmp_path: Path) -> None:
    scenario = load(write(tmp_path, "checks: all"))
    assert scenario.checks == CHECK_NAMES
    assert "checks: all" in scenario.to_yaml()  # so that a run again is judged by what applies, too
    assert load(write(tmp_path, scenario.to_yaml())) == scenario


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cluster: 3", "cluster: 3 is not allowed; expected a mapping of keys to values"),
        ("cluster: {brokers: two}", "cluster.brokers: 'two' is not allowed; expected a whole number from 1 to 26"),
        ("cluster: {brokers: 1.5}", "cluster.brokers: 1.5 is not allowed; expected a whole number from 1 to 26"),
        (
            "workload: {topic: a b}",
            "workload.topic: 'a b' is not allowed; expected a name of letters, digits, %, |, _ and -",
        ),
        ("workload: {client_profile: jav-5.3}", "or null; did you mean java-5.3?"),
        ("timeline: 3", "timeline: 3 is not allowed; expected a list"),
        ("timeline: [3]", "timeline.0: 3 is not allowed; expected a mapping of keys to values"),
        ("settle_s: -3", "settle_s: -3 is not allowed; expected a number from 0 to 100,000"),
        ("seed: -1", "seed: -1 is not allowed; expected a whole number from 0 on, or null"),
        (
            "clock: virtul",
            "clock: 'virtul' is not allowed; expected one of real, virtual, or null; did you mean virtual?",
        ),
        ("setle_s: 3", "did you mean settle_s?"),
        (
            "timeline: [{at_s: 1, do: latency, links: ['broker-a <-> ns-0']}]",
            "timeline.0.latency_ms: expected a number above 0: this key is required",
        ),
    ],
)
def test_what_is_allowed_is_said_in_a_users_words(text: str, said: str, tmp_path: Path) -> None:
    with refusal(said):
        load(write(tmp_path, f"checks: [routes_converge]\n{text}"))
