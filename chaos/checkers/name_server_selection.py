"""Clients choose NameServers as those of their language do; whose, the run's `client_profile` says.

Over every selection of the run (a process of a client, or one of the prober's starts), for Java's clients:

    shuffled      the list in use is a permutation of the configured NameServers
    uniform       over all selections, the first choice falls on each NameServer equally often (alpha 1e-6)
    in order      each later choice is the next entry of the client's own list
    sticky        another one is chosen only after the current one failed: a call without an answer, a failed connect,
                  or a close that a fault of that NameServer, of the link or of the client itself explains
    moves on      after such a failure the next call, or the next connect, is not made to the same one again
    attempts      a call tries as many NameServers as it may, no more, and not fewer while they fail
    answers are final   a call that got an answer, whatever its code, makes no other try
    in time       a call takes no longer than its tries may, and a wait for another call that is choosing

Other profiles put in place of these: `listed` (the list is as configured, in the order of the NameServers' names),
`start` (the first choice is a fixed entry) and `every request` (each call takes the next entry). The rules of a call
are judged where the history says its tries. An answer with an error code is no failure. A client's own close without a
reason is none either. A run whose workload names a `start_bias` must have made enough starts to find it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from ..oracle.client_profiles import Advance, Attempts, ClientProfile, Order, profile_of
from ..oracle.start_choice import ALPHA, POWER, detectable_bias, method, p_value, plan, starts_needed
from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.small_tables import memoized_table
from .findings import rounded
from .name_server_calls import TRIED, TRIES_RULES, WHO, broken_calls, judged_tries, rows_of, shown, tries_of

NAME = "name_server_selection"
BIAS = 0.1
"""What `measured` speaks of: the starts that find this bias with POWER, whether the run made them or not."""

EXPECTED_MIN = 10
"""First choices expected per NameServer below which nothing is said of them."""


def name_server_selection(history: DataFrame, world: World) -> Verdict:
    """Examined: choices of a NameServer. Violations: choices, lists, calls and connects against the rules."""
    configured = [node.address for node in world.of_kind("name_server") if node.address]
    if not configured:
        return Verdict.nothing_examined(NAME, "no NameServer is in the history")
    workload = world.run.get("workload") or {}
    try:
        profile = profile_of(workload.get("client_profile"), world.timers.profile)
    except KeyError as exc:
        return Verdict.nothing_examined(NAME, f"the run names a client profile that does not exist: {exc}")
    example = f"if(rule = '{TRIED}', NULL, struct(time_ms, node, start, name_server, was))"
    made = (
        _choices(history, world)
        .groupBy(F.expr("if(rank = 1, 'first', 'later') AS rule"), "name_server")
        .agg(F.expr("count(*) AS n"))
    )
    rows = (
        judged_rows(history, world, profile)
        .groupBy("rule")
        .agg(
            F.expr("count(*) AS n"),
            F.expr(f"slice(array_sort(collect_list({example})), 1, {EXAMPLES_MAX}) AS examples"),
        )
        .unionByName(made, allowMissingColumns=True)
        .coalesce(1)
        .collect()
    )
    names = {node.address: node.name for node in world.of_kind("name_server") if node.address}
    return _verdict([row.asDict() for row in rows], names, profile, workload.get("start_bias"))


def judged_rows(history: DataFrame, world: World, profile: ClientProfile) -> DataFrame:
    """rule, time_ms, node, start, name_server, was: what breaks the profile's rules (but for the one about all first
    choices), and the calls that kept those of a call, under the rule TRIED."""
    configured = [node.address for node in world.of_kind("name_server") if node.address]
    choices = _choices(history, world)
    return reduce(
        DataFrame.union,
        [
            _broken_choices(choices, profile, configured),
            judged_tries(tries_of(history, profile, len(configured), world)),
            *broken_calls(choices, history, profile, configured, world),
        ],
    )


def _choices(history: DataFrame, world: World) -> DataFrame:
    """One row per choice: who, time_ms, seq, name_server, rank (1 = first), index, old choice, and the list in use."""
    return memoized_table(history, world, "choices", lambda: _made_choices(history))


def _made_choices(history: DataFrame) -> DataFrame:
    of_one = Window.partitionBy(*WHO).orderBy("time_ms", "seq")
    is_list = "event = 'name_server_list'"
    return (
        rows_of(history, "name_server_list", "name_server_chosen")
        .selectExpr(
            *(*WHO, "role", "time_ms", "seq", "name_server", f"{is_list} AS is_list"),
            f"if({is_list}, NULL, from_json(value, 'index int').index) AS index",
            f"if({is_list}, from_json(value, 'array<string>'), NULL) AS in_list",
        )
        .select(
            *(*WHO, "role", "time_ms", "seq", "name_server", "index", "is_list"),
            F.last("in_list", ignorenulls=True).over(of_one).alias("listed"),
            F.sum(F.col("is_list").cast("int")).over(of_one).alias("list_number"),
        )
        .where("NOT is_list")
        .select(
            *(*WHO, "role", "time_ms", "seq", "name_server", "index", "listed"),
            F.row_number().over(of_one).alias("rank"),
            F.lag("name_server").over(of_one).alias("old"),
            F.lag("time_ms").over(of_one).alias("old_ms"),
            F.lag("index").over(of_one).alias("old_index"),
            (F.lag("list_number").over(of_one) == F.col("list_number")).alias("same_list"),
        )
    )


def _broken_choices(choices: DataFrame, profile: ClientProfile, configured: list[str]) -> DataFrame:
    listed, index, as_given = F.col("listed"), F.col("index"), F.array(*[F.lit(address) for address in configured])
    listed_at = F.element_at("listed", index + 1)
    in_order = index == F.pmod(F.col("old_index") + 1, F.size("listed"))
    as_configured = listed.eqNullSafe(as_given)
    if profile.order is Order.SHUFFLED:
        as_configured = F.sort_array("listed").eqNullSafe(F.sort_array(as_given))
    rule = (
        F.when(listed.isNull() | ~as_configured, str(profile.order))
        .when(~F.coalesce((index >= 0) & (index < F.size("listed")), F.lit(False)), "in order")
        .when(~listed_at.eqNullSafe(F.col("name_server")), "in order")
        .when(F.col("same_list") & ~F.coalesce(in_order, F.lit(False)), "in order")
    )
    start = profile.start.place(len(configured))
    if start is not None:
        rule = rule.when((F.col("rank") == 1) & (index != start), "start")
    disordered = choices.withColumn("rule", rule).where(F.col("rule").isNotNull())
    return shown(disordered, F.col("rule"), F.concat_ws(" then ", "old_index", "index"))


def first_choices_needed(name_servers: int) -> int:
    """So many that always choosing the same one would be found at ALPHA, and ten expected a NameServer."""
    if name_servers < 2:
        return 1
    always_same = math.ceil(1 + math.log(1 / ALPHA) / math.log(name_servers))
    return max(always_same, EXPECTED_MIN * name_servers)


def _starts(counts: list[int], start_bias: float | None) -> tuple[dict[str, Any], int, float]:
    """What the first choices tell (for `measured`), how many there must be, and their p-value."""
    n, total = len(counts), sum(counts)
    bias = start_bias or BIAS
    p, needed = p_value(counts), first_choices_needed(n)
    if n < 2 or bias > 1 - 1 / n:
        return {"starts": total, "p_value": p}, needed, p
    enough = starts_needed(n, bias=bias, power=POWER, alpha=ALPHA)
    found = detectable_bias(total, n, power=POWER, alpha=ALPHA)
    told = {
        "starts": total,
        "p_value": p,
        "judged_by": method(total, n),
        "bias": bias,
        "starts_needed": enough,
        "power": round(plan(total, n, bias=bias, alpha=ALPHA).power, 4),
        "bias_found": None if found is None else round(found, 3),
    }
    return told, max(needed, enough) if start_bias else needed, p


def _formula(profile: ClientProfile, needed: int) -> str:
    parts = [f"p ≥ {ALPHA:g} over {needed}+ first choices"] if profile.drawn else []
    when = "only after a failure" if profile.advance is Advance.ON_FAILURE else "at every request"
    tries = "1 try a call" if profile.attempts is Attempts.ONE else "n tries a call"
    return "; ".join([*parts, f"next = index + 1 mod n, {when}", tries])


def _verdict(
    rows: list[Mapping[str, Any]], names: Mapping[str, str], profile: ClientProfile, start_bias: float | None
) -> Verdict:
    counts = {address: 0 for address in names}
    strange: list[dict[str, Any]] = []
    for row in rows:
        if row["rule"] == "first" and row["name_server"] in counts:
            counts[row["name_server"]] += row["n"]
    later = sum(row["n"] for row in rows if row["rule"] == "later")
    calls = sum(row["n"] for row in rows if row["rule"] in TRIES_RULES)
    broken = {row["rule"]: row for row in rows if row["rule"] not in ("first", "later", TRIED)}
    total = sum(counts.values())
    told, needed, p = _starts([*counts.values()], start_bias) if profile.drawn else ({"starts": total}, 1, 1.0)
    for rule, row in sorted(broken.items()):
        for example in row["examples"]:
            strange.append(
                {
                    "rule": rule,
                    "client": example["node"],
                    "start": example["start"] or None,
                    "name_server": names.get(example["name_server"], example["name_server"]),
                    "was": example["was"],
                    "at_ms": rounded(example["time_ms"]),
                }
            )
    violations = sum(row["n"] for row in broken.values())
    uneven = total >= first_choices_needed(len(counts)) and p < ALPHA
    measured = {
        "first_choices": counts,
        "later_choices": later,
        "calls": calls,
        **told,
        "broken_rules": {rule: row["n"] for rule, row in sorted(broken.items())},
    }
    allowed = {
        "bound_ms": None,
        "formula": _formula(profile, needed),
        "tolerance_ms": None,
        "row": profile.rule,
        "client_profile": profile.name,
        "first_choices_needed": needed,
    }
    why = []
    if uneven:
        counted = " / ".join(str(count) for count in counts.values())
        why.append(f"first choices are not uniform: {counted}, p = {p:.2g}")
    if violations:
        why.append("; ".join(f"rule '{rule}' broken {row['n']} times" for rule, row in sorted(broken.items())))
    validity = Validity.VALID
    if why:
        validity = Validity.INVALID
    elif total + later == 0:
        return Verdict.nothing_examined(NAME, "no client chose a NameServer", measured=measured, allowed=allowed)
    elif total < needed:
        validity = Validity.UNKNOWN
        purpose = f"to find a bias of {start_bias:g}" if start_bias else "to tell whether they are uniform"
        why.append(f"{total} first choices are too few {purpose}; {needed} are needed")
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=total + later,
        violations=violations + uneven,
        measured=measured,
        allowed=allowed,
        examples=tuple(strange[:EXAMPLES_MAX]),
        why="; ".join(why),
    )
