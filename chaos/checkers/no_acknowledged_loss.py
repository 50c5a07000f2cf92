"""Every send that ended `ok` is received by a consumer, or found by the final reads.

A message that nobody received and that the final read of its queue does not hold is lost, when that read was complete
(`read_done`). When it was not, nobody knows: UNKNOWN. A send that ended `info` or `fail` promises nothing.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..oracle.world import World
from ..verdict import EXAMPLES_MAX, Validity, Verdict
from .dataframes.messages import acknowledged_sends, messages
from .dataframes.plain_pages import QUEUE, place
from .findings import rounded

NAME = "no_acknowledged_loss"
_COUNTS = ("acknowledged", "received", "only_in_final_reads", "lost", "unread")


def no_acknowledged_loss(history: DataFrame, world: World) -> Verdict:
    """Examined: acknowledged sends. Violations: those that are lost."""
    row = _counts(history)
    measured = {name: row[name] for name in _COUNTS}
    allowed = {"bound_ms": None, "formula": "0 lost", "tolerance_ms": 0, "row": "an acknowledged send is durable"}
    if not measured["acknowledged"]:
        return Verdict.nothing_examined(NAME, "no send was acknowledged", measured=measured, allowed=allowed)
    validity, why = Validity.VALID, ""
    if measured["lost"]:
        validity = Validity.INVALID
        why = f"{row['lost']} of {row['acknowledged']} acknowledged sends are neither received nor in the final reads"
    elif measured["unread"]:
        validity = Validity.UNKNOWN
        why = (
            f"{row['unread']} acknowledged sends were not received, and the final reads of their queues are incomplete"
        )
    return Verdict(
        name=NAME,
        verdict=validity,
        examined=measured["acknowledged"],
        violations=measured["lost"],
        measured=measured,
        allowed=allowed,
        examples=_examples(history, row["first_lost"] or row["first_unread"] or []),
        why=why,
    )


def _counts(history: DataFrame) -> dict[str, Any]:
    """The counts, and the first keys of what is lost and of what is unread.

    A message counts as often as its sends were acknowledged; they share one key, so one receipt is one of them all.
    """
    plain, others = messages(history)
    complete = history.where(F.col("event") == "read_done").select(place().alias("place")).distinct()
    seen = (F.col("receives") > 0) | (F.col("reads") > 0)
    missing = (
        others.where(F.col("acknowledged") > 0)
        .join(F.broadcast(complete.withColumn("complete", F.lit(True))), "place", "left")
        .select(
            "msg_key",
            "acked_ms",
            "acknowledged",
            F.when(F.col("receives") > 0, "received")
            .when(seen, "only_in_final_reads")
            .when(F.col("complete").isNotNull(), "lost")
            .otherwise("unread")
            .alias("fate"),
        )
    )

    def count(fate: str) -> Any:
        return F.sum(F.when(F.col("fate") == fate, F.col("acknowledged")).otherwise(0)).alias(fate)

    totals = missing.agg(F.sum("acknowledged").alias("acknowledged"), *(count(fate) for fate in _COUNTS[1:]))
    row: dict[str, Any] = {name: n or 0 for name, n in totals.collect()[0].asDict().items()}
    row["acknowledged"] += plain
    row["received"] += plain
    for fate in ("lost", "unread"):
        first: list[str] = []
        if row[fate]:
            worst = missing.where(F.col("fate") == fate).orderBy("acked_ms", "msg_key").limit(EXAMPLES_MAX)
            first = [found["msg_key"] for found in worst.collect()]
        row[f"first_{fate}"] = first
    return row


def _examples(history: DataFrame, keys: list[str]) -> tuple[dict[str, Any], ...]:
    sends = acknowledged_sends(history, keys)
    return tuple(
        {
            "msg_key": key,
            **{name: sends[key][name] for name in QUEUE},
            "offset": sends[key]["offset"],
            "client": sends[key]["node"],
            "at_ms": rounded(sends[key]["time_ms"]),
        }
        for key in keys
    )
