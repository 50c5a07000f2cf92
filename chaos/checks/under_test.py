"""What a verdict says where a client under test was to be judged and nothing was seen of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..oracle.world import World
from ..topology import NodeKind
from ..verdict import Validity, Verdict
from .check import Check


def with_clients_under_test(check: Check[Any], verdict: Verdict, world: World) -> Verdict:
    """The verdict; UNKNOWN in place of VALID where it is to be about a client under test that nothing was seen of."""
    if not check.outside or verdict.verdict is not Validity.VALID:
        return verdict
    unseen = [node.name for node in world.under_test() if node.kind == NodeKind.EXTERNAL]
    if not unseen:
        return verdict
    names, are = ", ".join(unseen), "are" if len(unseen) > 1 else "is"
    why = f"{names}, which {are} under test, made no connection"
    return replace(verdict, verdict=Validity.UNKNOWN, why=why)
