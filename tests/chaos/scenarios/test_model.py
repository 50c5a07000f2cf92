"""Scenario files: what is shipped is sound, and a file that is no scenario is refused."""

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
ALIASES_OF_ALIASES = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{turn}: &a{turn} [{', '.join([f'*a{turn - 1}'] * 9)}]\n" for turn in range(1, 8)
)


@pytest.mark.parametrize("name", sorted(shipped()))
def test_a_scenario_written_with_its_defaults_loads_as_the_same_scenario(name: str, tmp_path: Path) -> None:
    scenario = find(name)
    assert load(write(tmp_path, scenario.to_yaml())) == scenario
    assert scenario.description


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1, 2]", "a list is not allowed; expected a mapping"),
        ("{}", "checks: expected a list of at least 1: this key is required"),
        (f"{HEAD}settle_s: 10\nsettle_s: 20", "line 3, column 1: a second `settle_s:` is not allowed"),
        ("a: [", "line 2, column 1: expected well-formed YAML"),
        ("a: 1\nb:\n\tc: 1", "line 3, column 1: a tab; indent with spaces"),
        ("a: 1\n\tb: 1", "line 2, column 1: a tab; indent with spaces"),
        ("a: &a [*a]", "line 1, column 4: an alias that contains itself"),
        ("a: &a {<<: *a}", "line 1, column 4: an alias that contains itself"),
        ("a: " + "[" * 3000 + "]" * 3000, "lists and mappings are nested too deep"),
        ("a: 1\n---\nb: 1", "line 2, column 1: a second document is not allowed; expected one in a file"),
        (ALIASES_OF_ALIASES, "line 6, column 5: too much, with its aliases written out"),
        ("timeline:\n" + "- {at_s: 1, do: heal}\n" * 60_000, "too long"),
    ],
)
def test_a_file_that_is_no_scenario_is_refused_with_the_line(text: str, says: str, tmp_path: Path) -> None:
    with refusal(f"{tmp_path}/mine.yaml: {says}"):
        load(write(tmp_path, text))


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
