"""The mutation report's own rules, on made-up diffs; mutmut itself is run by `make mutation` only."""

import tomllib

from . import tree
from .report import Equivalent, Mutant, function_of, read_equivalents, stale, sums, unexplained

NAME = "nemesrv.clients.name_servers.xǁNameServerSelectorǁadvance__mutmut_3"
DIFF = """# a header of mutmut's
--- src/nemesrv/clients/name_servers.py
+++ src/nemesrv/clients/name_servers.py
@@ -2,4 +2,4 @@
     index = self.next_index()
-    return Choice(old, self.chosen, index)
+    return Choice(None, self.chosen, index)
"""
SURVIVOR = Mutant(
    function="clients/name_servers.py:NameServerSelector.advance",
    taken=("return Choice(old, self.chosen, index)",),
    put=("return Choice(None, self.chosen, index)",),
)
OTHER = Mutant(function="clients/name_servers.py:NameServerSelector.update", taken=("a",), put=("b",))
ENTRY = Equivalent(mutant=SURVIVOR, why="because")


def test_a_mutant_is_known_by_its_function_and_its_lines_whatever_its_number() -> None:
    assert Mutant.of_diff(NAME, DIFF) == SURVIVOR
    assert Mutant.of_diff(NAME.replace("_3", "_4"), DIFF) == SURVIVOR
    assert (
        function_of("nemesrv.clients.consumer.rebalance.x_java_order__mutmut_11")
        == "clients/consumer/rebalance.py:java_order"
    )


def test_equivalent_mutants_count_neither_for_nor_against() -> None:
    table = sums({"clients/name_servers.py": 19, "clients/consumer/rebalance.py": 5}, [SURVIVOR, OTHER], [ENTRY])
    counts = {name: (row.mutants, row.killed, row.equivalent, row.survived) for name, row in table.items()}
    assert counts == {
        "clients/consumer/rebalance.py": (5, 5, 0, 0),
        "clients/name_servers.py": (21, 19, 1, 1),
        "all": (26, 24, 1, 1),
    }
    assert table["all"].score == 24 / 25


def test_survivors_without_a_reason_and_reasons_without_a_survivor_are_told() -> None:
    assert unexplained([SURVIVOR, OTHER], [ENTRY]) == [OTHER]
    assert stale([OTHER], [ENTRY]) == [ENTRY]
    assert stale([SURVIVOR], [ENTRY]) == []


def test_every_reason_is_given_for_a_function_of_a_file_that_is_mutated() -> None:
    entries = read_equivalents()
    assert all(entry.why and entry.mutant.module in tree.MUTATED for entry in entries)
    assert len({entry.mutant for entry in entries}) == len(entries)


def test_what_mutmut_is_told_exists() -> None:
    settings = tomllib.loads(tree.configuration())["tool"]["mutmut"]
    assert all((tree.ROOT / path.removeprefix("src/nemesrv/")).is_file() for path in settings["only_mutate"])
    assert all((tree.ROOT / path).is_file() for path in settings["pytest_add_cli_args_test_selection"])
    assert all((tree.ROOT / path).is_file() for path in tree.LEFT_OUT)
    path, _, test = tree.RANDOM.partition("::")
    assert f"def {test}(" in (tree.ROOT / path).read_text(encoding="utf-8")
