"""No list is said to have an order that it has not: simulated clients of each order, and how many processes decide."""

import random

import pytest

from nemesrv.chaos.oracle.choosing.orders import GIVEN, ORDERS, OWN, SHUFFLED, ListOrder, Pairs, order_of

LEAVES, ALL_GONE = 7, 5
"""Situations that show one succession of a client that keeps its NameServer, and those that show two to five, in
conform's default."""


def list_of(kind: str, rng: random.Random, entries: int, own: dict[int, list[int]]) -> list[int]:
    """The list of a new process."""
    if kind == SHUFFLED:
        return rng.sample(range(entries), entries)
    if kind == GIVEN:
        return [*range(entries)]
    if entries not in own:
        own[entries] = rng.sample(range(entries), entries)
        turned = [own[entries][(own[entries].index(0) + at) % entries] for at in range(entries)]
        if turned == [*range(entries)]:
            own[entries].reverse()
    return own[entries]


def met(kind: str, rng: random.Random, entries: int, *, starts: int = 60, repeats: int = 1) -> ListOrder:
    """What is said of a client of that kind, of whom every second one begins at a fixed place of its list."""
    own: dict[int, list[int]] = {}
    fixed = rng.choice([None, 0])

    def process(n: int, steps: int) -> Pairs:
        order, first = list_of(kind, rng, n, own), rng.randrange(n) if fixed is None else fixed
        return n, [(order[(first + at) % n], order[(first + at + 1) % n]) for at in range(steps)]

    seen = [process(entries, 1) for _ in range(LEAVES * repeats)]
    seen += [process(4, rng.randint(2, 5)) for _ in range(ALL_GONE * repeats)]
    firsts = [(entries, process(entries, 1)[1][0][0]) for _ in range(starts)]
    return order_of(seen, firsts)


def said(kind: str, rng: random.Random, clients: int, **of: int) -> tuple[int, int]:
    """Of so many clients, how many are called so, and how many are called something else."""
    found = [met(kind, rng, **of).word for _ in range(clients)]
    return found.count(kind), sum(word not in (kind, None) for word in found)


@pytest.mark.parametrize("kind", ORDERS)
def test_of_a_thousand_lists_of_each_order_none_is_said_to_have_another(kind: str) -> None:
    rng = random.Random(f"thousand {kind}")
    for entries in (3, 4, 9):
        for starts in (3, 60):
            decided, wrong = said(kind, rng, 1_000, entries=entries, starts=starts)
            assert not wrong, (entries, starts)
            assert decided >= 950, (entries, starts)


def test_one_that_begins_anywhere_in_an_order_of_its_own_needs_as_many_processes_as_are_run() -> None:
    anywhere = [(4, [(1, 0), (0, 3)]), (4, [(3, 2), (2, 1)]), *[(3, [(2, 1)])] * 7]
    assert order_of(anywhere, [(3, 0), (3, 1)]).word is None
    found = order_of([*anywhere, *anywhere], [(3, 0), (3, 1)])
    assert (found.word, found.odds[GIVEN]) == (OWN, 0.0)
    assert [of.chains() for of in found.known] == [[[0, 3, 2, 1]], [[0], [2, 1]]]


def test_the_first_choices_alone_say_that_lists_are_not_shuffled_and_not_what_follows() -> None:
    found = order_of([], [(3, 0)] * 60)
    assert found.word is None
    assert found.odds == {GIVEN: 1.0, OWN: 1.0, SHUFFLED: pytest.approx(3.0**-59)}
    assert order_of([(3, [(0, 1)])], [(3, 0)] * 60).word == GIVEN
    assert order_of([(3, [(0, 2)])], [(3, 0)] * 60).word == OWN


def test_an_order_that_changes_within_a_process_is_none() -> None:
    assert order_of([(4, [(0, 1), (0, 2)])], [(4, 0)] * 9).word is None
