"""A defect of the user's own: what its file must say, and that the nodes have it."""

import pickle
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from nemesrv.chaos.commands.explain import explain
from nemesrv.chaos.errors import ScenarioError
from nemesrv.chaos.history.rows import read_rows
from nemesrv.chaos.judging import find
from nemesrv.chaos.runner import record_virtual
from nemesrv.chaos.scenarios.defect import DefectModuleError, of_file
from nemesrv.chaos.scenarios.loading import load, parse
from nemesrv.chaos.topology import NodeKind

GOOD = '''"""ns-0 never scans.

More of it.
"""
NODES = ["ns-0"]


def plant(node):
    node._expire_brokers = lambda: None
'''


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_says_what_is_wrong_and_where(tmp_path: Path) -> None:
    defect = of_file(written(tmp_path, GOOD))
    assert (defect.name, defect.what, defect.nodes) == ("mine", "ns-0 never scans.", ("ns-0",))
    assert defect.is_for("ns-0", NodeKind.NAME_SERVER)
    assert not defect.is_for("ns-1", NodeKind.NAME_SERVER)
    node = SimpleNamespace()
    pickle.loads(pickle.dumps(defect.plant))(node)
    assert node._expire_brokers() is None


def test_what_fails_in_a_node_is_said_with_the_files_line(tmp_path: Path) -> None:
    defect = of_file(written(tmp_path, GOOD.replace("node._expire_brokers", "node.nothing.there")))
    with pytest.raises(DefectModuleError, match=r"plant\(node\) of .*mine\.py, line 9: AttributeError: .* 'nothing'"):
        defect.plant(SimpleNamespace())


def test_kinds_are_every_node_of_them(tmp_path: Path) -> None:
    defect = of_file(written(tmp_path, 'KINDS = ["broker"]\ndef plant(node): ...\n'))
    assert defect.is_for("broker-b", NodeKind.BROKER)
    assert not defect.is_for("ns-0", NodeKind.NAME_SERVER)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def plant(node): ...", 'NODES = ["ns-0"] or KINDS'),
        ('NODES = ["ns-0"]', "a function plant(node)"),
        ('NODES = "ns-0"\ndef plant(node): ...', "NODES is a list of names"),
        ('KINDS = ["brokers"]\ndef plant(node): ...', "'brokers' is none"),
        ('NODES = ["ns-0"]\ndef plant(): ...', "a function plant(node)"),
        ('NODES = ["ns-0"]\nplant = 3', "a function plant(node)"),
        ('NODES = ["ns-0"]\nasync def plant(node): ...', "no async function"),
        ("1 +", "a file that Python can run: SyntaxError"),
        ("raise SystemExit(3)", "a file that Python can run: SystemExit"),
        ("import no_such_module_at_all", "ModuleNotFoundError"),
    ],
)
def test_what_is_no_defect_is_said(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DefectModuleError, match="file") as error:
        of_file(written(tmp_path, text))
    assert said in str(error.value)


def test_one_that_no_node_would_have_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("ns-0", "ns-7"))
    with pytest.raises(ScenarioError, match="it is for ns-7"):
        parse({"checks": ["routes_converge"], "defect": str(path)}, file="x.yaml")


def test_the_nodes_have_it_the_run_says_so_and_its_folder_repeats_it(tmp_path: Path) -> None:
    timeline = [{"at_s": 5, "do": "pause", "nodes": ["broker-a"]}, {"at_s": 160, "do": "resume", "nodes": ["broker-a"]}]
    (tmp_path / "wrong").mkdir()
    path = written(
        tmp_path / "wrong", GOOD.replace("    node._exp", "    node._channel_lost = lambda *_: None\n    node._exp")
    )
    document = {"checks": ["routes_are_true"], "cluster": {"name_servers": 2, "brokers": 2}, "timeline": timeline,
                "workload": {"client_starts": 0, "sends_per_s": 1}}  # fmt: skip
    scenario = parse({**document, "defect": str(path)}, file="x.yaml")
    folder = record_virtual(scenario, 1, tmp_path / "run")
    path.unlink()
    rows = list(read_rows(folder.path))
    begin_ms = next(row["time_ms"] for row in rows if row["event"] == "phase" and row["phase"] == "steady")
    dropped = [(row["node"], row["time_ms"] - begin_ms) for row in rows if row["event"] == "broker_dropped"]
    expired = {node for node, at_ms in dropped if 90_000 < at_ms < 160_000}
    assert expired == {"ns-1"}
    assert '"defect": "mine"' in str(next(row["value"] for row in rows if row["event"] == "run_begin")).replace(
        "'", '"'
    )
    again = load(folder.scenario_file)
    assert again.defect == str((folder.path / "mine.py").resolve())
    assert list(read_rows(record_virtual(again, 1, tmp_path / "again").path))[:100] == rows[:100]
    (folder.path / "mine.py").unlink()
    recorded = [folder.scenario(), find(str(folder.path), None, pytest.fail).scenario]
    assert [scenario and scenario.defect for scenario in recorded] == ["mine.py"] * 2, "a record is judged without it"
    assert CliRunner().invoke(explain, [str(folder.scenario_file)]).exit_code == 0
    with pytest.raises(ScenarioError, match="No such file"):
        load(folder.scenario_file)


@pytest.mark.parametrize(
    "lines",
    [
        ("from nemesrv.chaos.defects import in_its_parts, registers_with", "registers_with(broker, brokerAddr=other)"),
        ("from nemesrv.chaos.defects.broker import _with_header as made", "made(brokerAddr=other)(broker)"),
    ],
)
def test_a_file_finds_what_it_may_import_under_the_names_of_before_too(lines: tuple[str, str], tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        f"{lines[0]}\nfrom nemesrv.chaos.defects.model import in_its_parts\nNODES = ['broker-a']\n"
        f"other = lambda _: '127.0.0.1:10911'\nplant = in_its_parts(lambda broker: {lines[1]})\n"
    )
    plan = parse({"checks": ["routes_as_registered"], "settle_s": 40, "steady_s": 10}, file="x.yaml")
    found = record_virtual(plan, 1, tmp_path / "run", of_file(path)).path
    rows = [row for row in read_rows(found) if row["event"] == "registration"]
    assert {row["address"] for row in rows if row["broker_name"] == "broker-a"} == {"127.0.0.1:10911"}
