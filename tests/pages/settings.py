"""docs/settings.md, written from the catalogue itself: `python -m tests.generated` writes it anew, a test compares."""

from collections import Counter
from collections.abc import Iterable

from nemesrv.actors.namesrv.config import known_keys
from nemesrv.chaos.settings.catalogue import CATALOGUE, NOT_OBEYED, SAID_ELSEWHERE, group_of, settings_for
from nemesrv.chaos.settings.setting import CLIENTS, GROUPS, NAME_SERVERS, Setting, Value
from nemesrv.remoting.node.profile import Profile

_HEAD = """# Settings

A scenario sets RocketMQ's own settings by RocketMQ's own names, for groups of nodes and for single nodes. The nodes
obey these settings, and the checks compute each node's time limits from the node's settings.

```yaml settings.yaml
description: ns-1 gives up a silent broker sooner than the others, and producers cap each try.
cluster:  {name_servers: 3, brokers: 2, profile: "5.x"}
config:
  name_servers: {needWaitForService: true, waitSecondsForService: 20}
  ns-1:         {serverChannelMaxIdleTimeSeconds: 90}
  broker-a:     {forceRegister: false}
  clients:      {pollNameServerInterval: 20000, sendMsgMaxTimeoutPerRequest: 1000}
  consumer-0:   {waitInterval: 10000}
timeline:
  - {at_s: 20, do: black_hole, links: [broker-a <-> *]}
  - {at_s: 220, do: heal}
settle_s: 70
checks: [routes_converge, routes_are_true, no_false_eviction, dead_brokers_avoided, no_acknowledged_loss]
```

```sh
nemesrv run settings.yaml --clock virtual --seed 1
```

```text
VALID settings (…
```

* Groups are `name_servers`, `brokers`, `producers`, `consumers` and `clients` (producers, consumers and the prober). A
  value for a smaller group overrides a value for a larger group, and a value for a single node overrides both. A group
  accepts every setting of its members: `clients: {sendMsgMaxTimeoutPerRequest: 1000}` sets the producers.
* `timers: {register_name_server_period_s, poll_name_server_interval_s}` are the same settings as
  `registerNameServerPeriod` of `brokers` and `pollNameServerInterval` of `clients`; `workload: {latency_fault}` is
  `sendLatencyFaultEnable` of `producers`. A scenario whose `config` gives these groups another value is refused.
* nemesrv refuses a name that RocketMQ does not have, and prints the nearest name that RocketMQ has. nemesrv also
  refuses a setting of RocketMQ's that its nodes do not obey. A limit of silence must be longer than
  `registerNameServerPeriod` + `registerBrokerTimeoutMills`, and for clients' channels longer than
  `heartbeatBrokerInterval`; a limit that healthy nodes would exceed is refused.
* A setting without a text in the column `allowed` is true or false; a number is a whole number.
* If a value differs from node to node, a time limit for one node uses that node's value, and a time limit for all nodes
  uses the value that allows most.
* (constant) marks a value that is fixed in Java's code, in that profile or in both: RocketMQ itself cannot change the
  value, but a scenario can.

"""
_WINDOW = (
    "The column `symbol` has the timer's letter in the formulas of verdicts ([legend](checks.md#symbols-in-formulas))."
)


def render() -> str:
    """The whole of docs/settings.md."""
    parts = [_HEAD, _WINDOW, "\n\n"]
    for group, kinds in sorted(GROUPS.items(), key=lambda entry: list(GROUPS).index(entry[0])):
        rows = [one for one in CATALOGUE if group_of(one) == kinds]
        title = "producers, consumers and the prober" if kinds == CLIENTS else group.replace("name_s", "NameS")
        usual = Counter(one.upstream for one in rows).most_common(1)[0][0]
        parts.append(
            f"## Settings of {title}\n\nRocketMQ has them in {usual}, or in the class of the column `class`.\n\n"
        )
        parts.append(
            "| setting | class | 4.9 | 5.x | allowed | symbol | what it says |\n|---|---|---|---|---|---|---|\n"
        )
        parts += [f"{_row(one, usual)}\n" for one in rows]
        parts.append("\n")
    parts.append("## Settings that a scenario may not set\n\n")
    parts.append("RocketMQ also has the following settings, but a scenario that sets one of them is refused.\n\n")
    parts += [f"* `{name}`: {why}\n" for name, why in sorted(SAID_ELSEWHERE.items())]
    parts.append(f"* nodes of nemesrv do nothing with {_names(sorted(not_obeyed()))}\n")
    return "".join(parts)


def not_obeyed() -> frozenset[str]:
    """Settings that our nodes do nothing with."""
    ours = {one.name for one in CATALOGUE}
    of_name_servers = known_keys(Profile.V5_X) - settings_for(*NAME_SERVERS).keys()
    return (NOT_OBEYED | of_name_servers) - ours - SAID_ELSEWHERE.keys()


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _row(one: Setting, usual: str) -> str:
    defaults = " | ".join(_default(one, profile) for profile in Profile)
    allowed = "" if one.allowed.words == "true or false" else one.allowed.words.removeprefix("a whole number from ")
    upstream = "" if one.upstream == usual else one.upstream
    return f"| `{one.name}` | {upstream} | {defaults} | {allowed} | {one.symbol or ''} | {one.says} |"


def _default(one: Setting, profile: Profile) -> str:
    if profile not in one.profiles:
        return "–"
    return _text(one.default(profile)) + (" (constant)" if profile in one.constant else "")


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
