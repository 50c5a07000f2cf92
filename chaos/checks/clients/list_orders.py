"""Every order of a shuffled list is as likely as any other: many clients that all drew the same one did not shuffle.

A client that is left by its NameServer goes on to the next of its own order. Where all have one order, all clients of a
NameServer that dies go to one and the same next. Upstream: `NettyRemotingClient.updateNameServerAddressList`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import factorial

from ...oracle.start_choice import ALPHA, EXACT, method, p_value
from .name_server_calls import Broken, Choice, Selection

RULE = "shuffled evenly"
LIST_MAX = 3
"""Of a longer list there are too many orders for the starts of a run."""
_EXPECTED_MIN = 10


def uneven_orders(found: Iterable[Selection]) -> Iterator[Broken]:
    """One for each configured list of which some orders were drawn so often that chance is no reason."""
    by_list: dict[tuple[str, ...], list[tuple[Selection, Choice]]] = defaultdict(list)
    for of in found:
        if of.choices and (listed := of.choices[0].listed):
            by_list[tuple(sorted(listed))].append((of, of.choices[0]))
    for listed, drawn in by_list.items():
        if not 1 < len(listed) <= LIST_MAX or len(set(listed)) < len(listed):
            continue
        orders, cells = Counter(choice.listed for _, choice in drawn), factorial(len(listed))
        if method(len(drawn), cells) is not EXACT and len(drawn) < _EXPECTED_MIN * cells:
            continue
        p = p_value([*orders.values(), *[0] * (cells - len(orders))])
        if p < ALPHA:
            (_, most), *_ = orders.most_common(1)
            of, choice = drawn[-1]
            yield of.broken(RULE, choice.row, f"{most} of {len(drawn)} the same, p = {p:.2g}")
