"""The NameServer list: shuffle, start, order, and what counts as a change."""

import random
from collections import Counter
from typing import Any
from unittest.mock import Mock

from nemesrv.clients.name_servers import START_INDEX_BOUND, NameServerSelector, SelectionRules
from nemesrv.remoting.node.network import Address

A, B, C, D = (Address("10.0.0.1", port) for port in (1, 2, 3, 4))


def selector(seed: int = 0, *addresses: Address) -> NameServerSelector:
    made = NameServerSelector(random.Random(seed))
    made.update(addresses or (A, B, C))
    return made


def chi_square(counts: Counter[Any]) -> float:
    expected = counts.total() / len(counts)
    return sum((count - expected) ** 2 / expected for count in counts.values())


def test_first_choices_are_uniform_over_seeds() -> None:
    counts = Counter(selector(seed).advance(None).new for seed in range(3000))
    assert set(counts) == {A, B, C}
    assert chi_square(counts) < 13.8  # 0.1 %, 2 degrees of freedom


def test_every_order_of_the_list_is_as_likely() -> None:
    orders = Counter(selector(seed).addresses for seed in range(3000))
    assert len(orders) == 6
    assert chi_square(orders) < 20.5  # 0.1 %, 5 degrees of freedom


def test_the_start_index_covers_0_to_998() -> None:
    rng = Mock(randrange=lambda bound: bound - 1)  # its shuffle does nothing
    made = NameServerSelector(rng)
    made.update((A, B, C))
    assert START_INDEX_BOUND == 999
    assert made.advance(None) == (None, A, 999 % 3)


def test_after_the_first_the_choices_go_round_the_shuffled_list() -> None:
    made = selector(7)
    first = made.advance(None)
    order = made.addresses
    following = [made.advance(made.chosen).new for _ in range(5)]
    assert following == [order[(first.position + step) % 3] for step in range(1, 6)]


def test_the_choice_stays_while_its_channel_is_active() -> None:
    made = selector()
    assert made.sticky(lambda address: True) is None
    chosen = made.advance(None).new
    assert made.sticky(lambda address: address == chosen) == chosen
    assert made.sticky(lambda address: False) is None
    assert made.chosen == chosen


def test_a_list_with_the_same_servers_in_another_order_is_no_change() -> None:
    made = selector()
    order = made.addresses
    assert not made.update((C, A, B))
    assert not made.update(())
    assert made.addresses == order


def test_a_list_that_swaps_one_server_is_a_change_and_forgets_a_choice_that_left() -> None:
    made = selector()
    left = made.advance(None).new
    kept = tuple(address for address in (A, B, C) if address != left)
    assert made.update((*kept, D))
    assert set(made.addresses) == {*kept, D}
    assert made.chosen is None


def test_a_shorter_or_longer_list_is_a_change_and_one_that_grows_keeps_the_choice() -> None:
    assert selector().update((A, B))
    made = selector()
    chosen = made.advance(None).new
    assert made.update((A, B, C, D))
    assert made.chosen == chosen


def test_a_client_of_another_language_may_take_the_list_as_it_is_and_the_next_entry_at_every_request() -> None:
    rules = SelectionRules(shuffled=False, start=1, each_request=True)
    made = NameServerSelector(random.Random(1), rules)
    made.update((A, B, C))
    assert made.addresses == (A, B, C)
    assert made.sticky(lambda _: True) is None
    assert [made.advance(None).position for _ in range(4)] == [1, 2, 0, 1]
    assert made.sticky(lambda _: True) is None
