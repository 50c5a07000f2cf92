"""Which messages of a topic a subscription wants: all, those with certain tags, or those that match an SQL92 filter."""

from collections.abc import Callable
from dataclasses import dataclass

from ...remoting.bodies.client import SUB_ALL, SubscriptionData
from .config import BrokerConfig
from .sql_filter import Properties, compile_filter

TAG, SQL92 = "TAG", "SQL92"


class FilterUnsupported(Exception):
    """The broker does not support filters of this expression type."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The messages that a subscription wants. `tags_codes` None allows any tag, `takes` None any properties."""

    tags_codes: frozenset[int] | None = None
    takes: Callable[[Properties], bool] | None = None


EVERYTHING = Wanted()


def wanted_by(subscription: SubscriptionData, config: BrokerConfig) -> Wanted:
    """Return which messages `subscription` wants. Raises FilterUnsupported, SqlError."""
    kind = subscription.expression_type
    if kind in ("", TAG):
        everything = subscription.sub_string == SUB_ALL or subscription.class_filter_mode
        return EVERYTHING if everything else Wanted(subscription.code_set)
    if not config.enable_property_filter or kind != SQL92:
        raise FilterUnsupported(f"The broker does not support consumer to filter message by {kind}")
    return Wanted(takes=compile_filter(subscription.sub_string, with_contains=config.is_5x))
