"""A test that is a coroutine, played in a world of its own that goes by the machine's clock.

Without a decorator of these a coroutine is played on virtual time (conftest.py).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

Test = Callable[..., Any]


def played(play: Callable[..., None], worlds: int = 1) -> Callable[[Test], Test]:
    """The decorator of tests whose first `worlds` arguments come from `play`, and the others from pytest.

    `play` is called with the rest of the test, a coroutine of these first arguments, and with what else it takes, which
    comes from pytest, too: where it has no default, or the test names it.
    """
    _, *of_play = inspect.signature(play).parameters.values()

    def decorated(test: Test) -> Test:
        of_test = {each.name: each for each in [*inspect.signature(test).parameters.values()][worlds:]}
        asked = {each.name: each for each in of_play if each.default is each.empty} | of_test

        def whole(**given: Any) -> None:
            own = {name: given[name] for name in of_test}
            how = {one.name: given[one.name] for one in of_play if one.name in given}
            play(lambda *world: test(*world, **own), **how)

        functools.update_wrapper(whole, test)
        whole.__signature__ = inspect.Signature([*asked.values()])  # type: ignore[attr-defined]
        return whole

    return decorated
