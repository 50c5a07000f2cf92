"""No peer answers a client what it did not ask: not oneway requests, and no request twice.

A client records `unasked_answer` when a response comes on a channel where no request with its opaque waits, or was
given up: one that came late is nothing to wonder at. RocketMQ's peers never answer a request whose oneway flag is set,
and each other request once (`NettyRemotingAbstract.processRequestCommand`).
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.shared import parts_of
from .findings import rounded

NAME = "answers_asked_for"
_OPERATIONS = ("name_server_call", "send_attempt", "pull")


def answers_asked_for(history: DataFrame, world: World) -> Verdict:
    """Examined: calls of clients that were answered. Violations: answers that no call had asked for."""
    event = F.col("event")
    unasked = event == "unasked_answer"
    example = F.struct("time_ms", "node", "address", F.get_json_object("value", "$.reason").alias("reason"))
    # Counted apart: an aggregate of examples beside one of millions of answers would make Spark sort these.
    answered = sum(part.where(F.col("type") == "ok").count() for part in parts_of(history, *_OPERATIONS))
    row = (
        history.where(unasked)
        .agg(
            F.count("*").alias("unasked"),
            F.countDistinct("address").alias("peers"),
            F.min(example).alias("first"),
            F.max(example).alias("last"),
        )
        .collect()[0]
    )
    measured = {"answered": answered, "unasked": row["unasked"]}
    allowed = {"bound_ms": None, "formula": "0 unasked", "tolerance_ms": 0, "row": "oneway requests have no answer"}
    if not answered and not row["unasked"]:
        return Verdict.nothing_examined(NAME, "no call was answered", measured=measured, allowed=allowed)
    names = {node.address: node.name for node in world.nodes if node.address}
    examples = [
        {
            "client": found["node"],
            "peer": names.get(found["address"], found["address"]),
            "answer": found["reason"],
            "at_ms": rounded(found["time_ms"]),
        }
        for found in dict.fromkeys((row["first"], row["last"]))
        if found is not None
    ]
    invalid = bool(row["unasked"])
    return Verdict(
        name=NAME,
        verdict=Validity.INVALID if invalid else Validity.VALID,
        examined=answered + row["unasked"],
        violations=row["unasked"],
        measured=measured,
        allowed=allowed,
        examples=tuple(examples[:EXAMPLES_MAX]),
        why=f"{row['unasked']} answers of {row['peers']} peers were not asked for" if invalid else "",
    )
