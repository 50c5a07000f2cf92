"""No client is called what it is not: simulated clients of each label, and how many steps decide."""

import math
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from nemesrv.chaos.oracle.choosing.labels import EVERY, KEPT, MOVES, RANDOM, Label, label_of
from nemesrv.chaos.oracle.choosing.machine import Machine, Step, Successions
from nemesrv.chaos.oracle.client_profiles import PROFILES

Draw = Callable[[random.Random, int, list[int]], Callable[[int], int]]
LENGTHS = range(2, 10)
STARTS = (3, 5, 8, 12, 20, 30, 60)
LOOK_UPS = 4
"""Of each process: as many as a poll each 30 s makes in 100 s."""


def keeps(rng: random.Random, entries: int, order: list[int]) -> Callable[[int], int]:
    return lambda was: was


def takes_turns(rng: random.Random, entries: int, order: list[int]) -> Callable[[int], int]:
    return lambda was: order[(order.index(was) + 1) % entries]


def draws(rng: random.Random, entries: int, order: list[int]) -> Callable[[int], int]:
    return lambda was: rng.randrange(entries)


def has_its_own_way(rng: random.Random, entries: int, order: list[int]) -> Callable[[int], int]:
    """It turns to the first of the list twice as often as one that draws, whatever came before; of two entries, to the
    other one three times of four."""
    if entries == 2:
        return lambda was: was if rng.random() < 0.25 else 1 - was
    return lambda was: 0 if rng.random() < 2 / entries else rng.randrange(1, entries)


KINDS: dict[str, Draw] = {KEPT: keeps, EVERY: takes_turns, RANDOM: draws, MOVES: has_its_own_way}


def walked(label: str, rng: random.Random, entries: int, starts: int, looks: int = LOOK_UPS) -> Label:
    """What is said of a client of that kind after so many starts; every second one shuffles its list, but for those
    that take turns, where no client is known to do so."""
    shuffles = label != EVERY and rng.random() < 0.5
    walks = []
    for _ in range(starts):
        order = rng.sample(range(entries), entries) if shuffles else [*range(entries)]
        follows = KINDS[label](rng, entries, order)
        places = [order[0]]
        for _ in range(looks - 1):
            places.append(follows(places[-1]))
        walks.append((entries, [Step(None, places[0]), *(Step(a, b) for a, b in pairwise(places))]))
    return label_of(walks)


def said(label: str, rng: random.Random, entries: int, starts: int, clients: int) -> tuple[int, int]:
    """Of so many clients, how many are called so, and how many are called something else."""
    found = [walked(label, rng, entries, starts).word for _ in range(clients)]
    return found.count(label), sum(word not in (label, None) for word in found)


@pytest.mark.parametrize("label", KINDS)
def test_of_a_few_clients_of_each_kind_none_is_called_what_it_is_not(label: str) -> None:
    rng = random.Random(f"few {label}")
    for entries in (2, 3, 9):
        for starts in (3, 16, 60):
            _, wrong = said(label, rng, entries, starts, 10)
            assert not wrong, (entries, starts)


@pytest.mark.nightly("test_of_a_few_clients_of_each_kind_none_is_called_what_it_is_not")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("label", KINDS)
def test_of_a_thousand_clients_of_each_kind_none_is_called_what_it_is_not(label: str) -> None:
    rng = random.Random(f"thousand {label}")
    for entries in LENGTHS:
        for starts in STARTS:
            _, wrong = said(label, rng, entries, starts, 1_000)
            assert not wrong, f"{wrong} of 1,000 with {entries} NameServers and {starts} starts"


@pytest.mark.parametrize(("label", "starts"), [(KEPT, 5), (EVERY, 5)])
def test_so_many_starts_decide(label: str, starts: int) -> None:
    rng = random.Random(f"decides {label}")
    for entries in (3, 4, 9):
        assert said(label, rng, entries, starts, 20) == (20, 0)


def test_turns_in_lists_that_are_shuffled_are_not_told_from_who_goes_to_any_other_before_they_come_round() -> None:
    def shuffled(looks: int) -> Label:
        walks = []
        for seed in range(20):
            order = random.Random(seed).sample(range(5), 5)
            places = [order[at % 5] for at in range(looks)]
            walks.append((5, [Step(a, b) for a, b in pairwise(places)]))
        return label_of(walks)

    assert shuffled(2).word is None
    assert shuffled(12).word == EVERY


def test_what_is_not_decided_names_what_it_may_be_and_what_it_is_not() -> None:
    few = label_of([(3, [Step(None, 0), Step(0, 0), Step(0, 0)])])
    assert (few.word, few.rivals[0], few.odds[EVERY]) == (None, KEPT, 0.0)
    assert 0.8 < few.rarest < 1.0
    once = label_of([(3, [*[Step(0, 0)] * 20, Step(0, 1)])])
    assert (once.word, once.odds[KEPT], once.takes_turns) == (MOVES, 0.0, False)
    coins = label_of([(3, [Step(2, 0), Step(0, 1), Step(1, 0)])])  # ns-2, ns-0, ns-1, ns-0
    assert coins.word is None
    assert coins.odds[EVERY] == 0.0
    assert coins.takes_turns


def test_steps_in_lists_of_several_lengths_count_together() -> None:
    rng, walks = random.Random(0), []
    for entries, looks in [*[(3, 4)] * 60, *[(2, 4)] * 3, *[(4, 5)] * 2]:
        places = [rng.randrange(entries) for _ in range(looks)]
        walks.append((entries, [Step(a, b) for a, b in pairwise(places)]))
    assert label_of(walks).word == RANDOM


def test_steps_that_nobody_can_put_in_order_say_nothing() -> None:
    assert label_of([(3, [Step(0, 2, tied=True)] * 50)]).steps == 0
    assert label_of([(1, [Step(0, 0)] * 50)]).word is None


def test_a_shuffled_list_is_learned_as_it_is_gone_through_and_each_list_is_as_likely_as_any() -> None:
    known = Successions(4)
    assert [known.chance(2, 0), known.chance(0, 3), known.chance(3, 1), known.chance(1, 2)] == [1 / 3, 1 / 2, 1.0, 1.0]
    assert known.chance(2, 3) == 0.0
    early = Successions(4)
    early.chance(0, 1)
    assert early.chance(1, 0) == 0.0, "not before all others had their turn"


def test_a_step_that_a_profile_does_not_allow_has_no_chance() -> None:
    go, java = (Machine.of(PROFILES[name], 3) for name in ("go", "java-4.9"))
    in_turn = [Step(None, 0), Step(0, 1), Step(1, 2), Step(2, 0)]
    assert go.log_likelihood(in_turn, 3) == 0.0
    assert java.log_likelihood(in_turn, 3) == -math.inf
    kept = [Step(None, 2), Step(2, 2), Step(2, 1, failed=True)]
    assert java.log_likelihood(kept, 3) > -math.inf
    assert go.log_likelihood(kept, 3) == -math.inf
