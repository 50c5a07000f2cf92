"""The model of a timeline's entries: the action, its time, and its nodes or links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from ..faults.acts_by_hand import ByHand
from ..faults.clock_changes import ClockAction
from ..faults.fault import Action, Strict
from ..faults.kinds import ACTIONS, AnyAction
from ..faults.link_faults import LinkFault

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9%|_-]{1,127}$")]


class ActionModel(Strict):
    """An entry of the timeline. In YAML the fields of `what` are written next to `at_s`, without the key `what`."""

    at_s: float = Field(ge=0, le=100_000)
    what: AnyAction
    links: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Hosts of `placement`, for actions on whole hosts."""
    name: Name | None = None
    """Name of a fault of links, so that a heal can end it alone; None: its kind with its number in the timeline."""
    period_s: float | None = Field(None, ge=0.1, le=100_000)
    """For a fault of links: it flaps. It is on for `duty` of each period, until a heal."""
    duty: float | None = Field(None, gt=0, lt=1)
    """None: 0.5."""

    @property
    def do(self) -> str:
        return self.what.do

    @property
    def summary(self) -> str:
        """Return the entry's action and targets in a line."""
        named = filter(None, [self.name, self.what.about])
        flaps = [f"{self.duty or 0.5:.0%} of each {self.period_s:g} s"] if self.period_s else []
        healed = getattr(self.what, "faults", ())
        return " ".join([self.do, *named, *self.links, *self.nodes, *self.hosts, *healed, *flaps])

    @model_validator(mode="before")
    @classmethod
    def _parted(cls, document: Any) -> Any:
        """Separate the action's own keys (`what`) from the keys that every entry may have. Keys of other actions
        without a value (null, 0, [] or both) are left out."""
        if not isinstance(document, dict) or isinstance(document.get("what"), Action):
            return document
        own = {key: value for key, value in document.items() if key in _ENTRY_KEYS}
        kind = ACTIONS.get(str(document.get("do")))
        what = {
            key: value
            for key, value in document.items()
            if key not in _ENTRY_KEYS
            and (kind is None or key in kind.model_fields or key not in _ANY_KEYS or value not in (None, 0, "both"))
        }
        return {**own, "what": what}

    @model_serializer(mode="wrap")
    def _joined(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        entry = handler(self)
        what = entry.pop("what")
        said = {key: entry[key] for key in ("name", "links", "nodes", "hosts", "period_s", "duty") if entry[key]}
        own = {key: value for key, value in what.items() if value != [] and (key, value) not in _UNSAID}
        return {"at_s": entry["at_s"], "do": own.pop("do"), **said, **own}

    @model_validator(mode="after")
    def _has_what_it_acts_on(self) -> ActionModel:
        acts_on = self.what.acts_on
        if acts_on and self.what.needs_targets and not getattr(self, acts_on):
            example = {"links": "[broker-a <-> ns-0]", "hosts": "[b]"}.get(acts_on) or _example(self.what)
            raise ValueError(f"`do: {self.do}` needs `{acts_on}`, e.g. {acts_on}: {example}")
        if self.nodes and acts_on == "links":
            raise ValueError(f"`do: {self.do}` acts on links, not on nodes")
        for targets in ("links", "nodes", "hosts"):
            if getattr(self, targets) and acts_on != targets:
                raise ValueError(f"`do: {self.do}` takes no {targets}")
        if self.name is not None and not isinstance(self.what, LinkFault):
            raise ValueError(f"`do: {self.do}` takes no name: faults of links have one, by which a heal ends them")
        if self.period_s is not None and not isinstance(self.what, LinkFault):
            raise ValueError(f"`do: {self.do}` takes no period_s: faults of links can flap")
        if self.duty is not None and self.period_s is None:
            raise ValueError("duty goes with period_s: it is the part of each period in which the fault is on")
        for node in self.nodes:
            if self.nodes.count(node) > 1:
                raise ValueError(f"`do: {self.do}` names each node once, and {node} more than once")
        return self


def _example(what: Action) -> str:
    name_servers = isinstance(what, ClockAction) or (isinstance(what, ByHand) and "broker" not in what.asks)
    return "[ns-0]" if name_servers else "[broker-a]"


_UNSAID = (("implementation", None), ("new_address", False))
"""Default values, which an entry need not have."""
_ENTRY_KEYS = ("at_s", "links", "nodes", "hosts", "name", "period_s", "duty")
_ANY_KEYS = frozenset(key for kind in ACTIONS.values() for key in kind.model_fields) | {"connections"}
"""Run folders of earlier versions say `connections: null` of a reset."""


def keys_of(do: str) -> list[str]:
    """Return the keys that a timeline's entry with this `do` may have."""
    kind = ACTIONS[do]
    named = ["name", "period_s", "duty"] if issubclass(kind, LinkFault) else []
    named += ["for_s"] if ends_by_itself(kind) else []
    own = (key for key in kind.model_fields if key != "do")
    return ["at_s", "do", *([kind.acts_on] if kind.acts_on else []), *own, *named]


def ends_by_itself(kind: type[Action]) -> bool:
    """Whether an action of this kind can have a duration (`for_s`) at whose end series.py adds a heal, a restart or a
    resume."""
    return issubclass(kind, LinkFault) or bool(getattr(kind, "ended_by", "") and "for_s" not in kind.model_fields)


def is_chosen(expression: str) -> bool:
    """Whether the link expression means each client's link to the NameServer that the client uses when the fault
    begins."""
    return expression.replace(" ", "") in ("clients<->chosen", "clients->chosen")


def fault_ids(timeline: Sequence[ActionModel]) -> list[str | None]:
    """Return the id of each entry that is a fault of links: its name, or its kind with a number. Return None for other
    entries."""
    names = {entry.name for entry in timeline}
    found: list[str | None] = []
    begun = 0
    for entry in timeline:
        if not isinstance(entry.what, LinkFault):
            found.append(None)
            continue
        begun += 1
        number = begun
        while entry.name is None and f"{entry.do}-{number}" in names:
            number += 1
        found.append(entry.name or f"{entry.do}-{number}")
    return found


def with_fault_ids(timeline: Sequence[ActionModel]) -> tuple[ActionModel, ...]:
    """Return the timeline with the id of every fault of links as its name."""
    return tuple(
        entry.model_copy(update={"name": fault_id or entry.name})
        for entry, fault_id in zip(timeline, fault_ids(timeline), strict=True)
    )
