"""What the authors of a client may want to know, with what was measured of it; nothing is said that no file shows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .catalogue import CLIENTS


@dataclass(frozen=True, slots=True)
class Concern:
    """A value of a rule that costs the client's users something."""

    rule: str
    values: tuple[str, ...]
    says: str
    beside: tuple[str, ...] = ()
    """Rules whose figures show what it costs."""


CONCERNS = (
    Concern(
        "failover",
        ("never",),
        "if one of two NameServers drops SYNs, and the other closes its connections and accepts again after 1 s, no "
        "further look-up is answered, because connecting to the first takes the whole time of each call "
        "(for Java: apache/rocketmq#7056)",
    ),
    Concern(
        "send_retries",
        ("the same broker",),
        "after SERVICE_NOT_AVAILABLE 14 from a broker, a send is tried again on the same broker",
        ("sends_lost",),
    ),
    Concern("send_retries", ("none",), "after SERVICE_NOT_AVAILABLE 14 from a broker, a send is not tried again"),
)


def concerns(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One sentence a concern, with its clients and their figures; then what drivers found."""
    for concern in CONCERNS:
        of_figures: dict[str, list[str]] = {}
        for name, client in CLIENTS.items():
            rules = {rule["rule"]: rule for rule in found.get(name, {}).get("rules", ())}
            rule = rules.get(concern.rule)
            if rule is not None and rule["measured"] in concern.values:
                shown = (rules[each] for each in (concern.rule, *concern.beside) if each in rules)
                figures = (f"`{each['rule']}`: {each['why'].partition(', as the program')[0]}" for each in shown)
                of_figures.setdefault("; ".join(figures), []).append(client.says)
        for figures, clients in of_figures.items():
            yield f"{', '.join(clients)}: {concern.says} ({figures})."
    for client in CLIENTS.values():
        yield from (f"{client.says}: {each}" for each in client.findings)
