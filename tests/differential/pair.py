"""Both servers as one: every request goes to both and their answers are compared; so is everything they hold."""

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

import orjson

from nemesrv.remoting import fastjson
from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.node.profile import Profile

from . import operations
from .comparing import Different, canonical, compare, opaque_of
from .operations import Register, command
from .peers import Peers
from .wire import Channel, Link

SETTLED_WITHIN_S = 3.0
SENTINEL = "sentinel"
_LISTS = (
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS,
)
_UNIT_LISTS = (
    RequestCode.GET_UNIT_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST,
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST,
)
Both = tuple[RemotingCommand, RemotingCommand]


class Pair:
    """Two servers under comparison. `answers` and `exceptions` count what was compared and what was excused."""

    def __init__(self, peers: Peers) -> None:
        self.peers, self.profile = peers, peers.profile
        self.five = peers.profile is Profile.V5_X
        self.answers = 0
        self.exceptions: Counter[str] = Counter()
        self._opaque = 0
        self.admin = self.link()

    def restart(self) -> None:
        """Two new servers, for when the old ones no longer agree."""
        self.admin.close()
        self.peers.stop()
        self.peers.start()
        self.admin = self.link()

    def link(self) -> Link:
        return Link(self.peers.addresses)

    # -- asking ------------------------------------------------------------------------------------------------------

    def ask(self, request: RemotingCommand, link: Link | None = None, *, allowed: Collection[str] = ()) -> Both:
        """Both answers, theirs first. Different when they are, for a reason that is not `allowed`."""
        ((theirs, ours),) = self._frames([request], link or self.admin)
        self._compare(request, theirs, ours, allowed)
        return decode_frame(theirs), decode_frame(ours)

    def ask_all(self, requests: Sequence[RemotingCommand], *, allowed: Collection[str] = ()) -> None:
        """As `ask`, for requests whose order does not matter: all at once."""
        for request, (theirs, ours) in zip(requests, self._frames(requests, self.admin), strict=True):
            self._compare(request, theirs, ours, allowed)

    def ask_before_the_end(self, request: RemotingCommand, link: Link, *, allowed: Collection[str] = ()) -> bool:
        """Whether a registration, after which a server closes the channel at any time, has been taken by both."""
        request.opaque = self._next_opaque()
        frames = []
        for channel in link.channels:
            channel.send(encode_frame(request))
        for channel in link.channels:
            with contextlib.suppress(ConnectionError):
                frames.append(channel.frame())
        if len(frames) == 2:
            self._compare(request, frames[0], frames[1], allowed)
        return all(decode_frame(frame).code == ResponseCode.SUCCESS for frame in frames)

    def silence(self, code: int, link: Link | None = None) -> None:
        """Neither answers `code`: the answer to the request behind it comes, and no other."""
        link = link or self.admin
        unknown = command(code, {})
        unknown.opaque = self._next_opaque()
        for channel in link.channels:
            channel.send(encode_frame(unknown))
        self.ask(command(RequestCode.GET_BROKER_CLUSTER_INFO), link)
        self.ask(command(RequestCode.GET_BROKER_CLUSTER_INFO), link)

    def each(self, request: RemotingCommand, link: Link | None = None) -> Both:
        """Both answers, not compared."""
        ((theirs, ours),) = self._frames([request], link or self.admin)
        return decode_frame(theirs), decode_frame(ours)

    def _next_opaque(self) -> int:
        self._opaque = self._opaque % 2_000_000_000 + 1
        return self._opaque

    def _frames(self, requests: Sequence[RemotingCommand], link: Link) -> list[tuple[bytes, bytes]]:
        for request in requests:
            request.opaque = self._next_opaque()
        data = b"".join(map(encode_frame, requests))
        for channel in link.channels:
            channel.send(data)
        theirs, ours = (self._read(channel, requests) for channel in link.channels)
        return list(zip(theirs, ours, strict=True))

    def _read(self, channel: Channel, requests: Sequence[RemotingCommand]) -> list[bytes]:
        """One frame for each request, in the requests' order: Java's threads may answer in another."""
        if len(requests) == 1:
            frame = channel.frame()
            if opaque_of(frame) != requests[0].opaque:
                raise Different(f"an answer that nobody waits for: {decode_frame(frame)}, asked {requests[0]}")
            return [frame]
        found = {opaque_of(frame): frame for frame in (channel.frame() for _ in requests)}
        return [found[request.opaque] for request in requests]

    def _compare(self, request: RemotingCommand, theirs: bytes, ours: bytes, allowed: Collection[str]) -> None:
        self.answers += 1
        used = compare(self.profile, request, theirs, ours, allowed=allowed)
        if used:
            self.exceptions.update(used)

    # -- state -------------------------------------------------------------------------------------------------------

    def compare_state(self, topics: Sequence[str], lives: Iterable[tuple[str, str]], clusters: Iterable[str]) -> None:
        """Every list, the routes of `topics` in both dialects, what is held of each (cluster, address) of `lives`."""
        requests = [command(code) for code in _LISTS]
        routes = [operations.route(topic) for topic in topics]
        requests += routes
        requests += [operations.route(topic, version=operations.V4_9_3) for topic in topics]
        requests += [operations.query_version(cluster, addr) for cluster, addr in lives]
        requests += [command(RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": cluster}) for cluster in clusters]
        answers = self._frames(requests, self.admin)
        for request, (theirs, ours) in zip(requests, answers, strict=True):
            if request.code == RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS:
                self._compare_system_topics(theirs, ours, answers[0][0])
            else:
                self._compare(request, theirs, ours, ())
        told = [decode_frame(frames[0]) for request, frames in zip(requests, answers, strict=True) if request in routes]
        if all(route.code != ResponseCode.SYSTEM_ERROR for route in told):  # else routes wait for service
            self._compare_unit_lists(
                {topic for topic, route in zip(topics, told, strict=True) if _has_mixed_flags(route)}
            )

    def _compare_system_topics(self, theirs: bytes, ours: bytes, cluster_info: bytes) -> None:
        """They name the address of any broker; the rest is equal."""
        self.answers += 1
        lists = [fastjson.loads(decode_frame(frame).body) for frame in (theirs, ours)]
        named = [each.pop("brokerAddr", None) for each in lists]  # type: ignore[attr-defined]
        known = orjson.dumps(fastjson.loads(decode_frame(cluster_info).body)).decode()
        for addr in named:
            if addr is not None and orjson.dumps(addr).decode() not in known:
                raise Different(f"system topics name {addr}, which is no broker of {known}")
        if canonical(lists[0]) != canonical(lists[1]) or (named[0] is None) != (named[1] is None):
            raise Different(f"system topics differ\ntheirs {decode_frame(theirs)}\nours   {decode_frame(ours)}")
        self.exceptions["hash-choice"] += named[0] != named[1]

    def _compare_unit_lists(self, mixed: set[str]) -> None:
        """One arbitrary row of a topic decides, so topics whose rows disagree may be in or out."""
        requests = [command(code) for code in _UNIT_LISTS]
        for request, (theirs, ours) in zip(requests, self._frames(requests, self.admin), strict=True):
            if not mixed or decode_frame(theirs).code != ResponseCode.SUCCESS:
                self._compare(request, theirs, ours, ())
                continue
            self.answers += 1
            lists = (fastjson.loads(decode_frame(frame).body)["topicList"] for frame in (theirs, ours))  # type: ignore[index,call-overload]
            one, other = map(set, lists)
            if one - mixed != other - mixed:
                raise Different(f"unit topics of {request.code} differ\ntheirs {one}\nours   {other}, mixed {mixed}")
            self.exceptions["hash-choice"] += one != other

    # -- waiting -----------------------------------------------------------------------------------------------------

    def until(self, what: str, holds: Callable[[Channel], bool]) -> None:
        """Returns when `holds` for both servers; Different when it does not in time."""
        for name, channel in zip(("theirs", "ours"), self.admin.channels, strict=True):
            deadline = time.monotonic() + SETTLED_WITHIN_S
            while not holds(channel):
                if time.monotonic() > deadline:
                    raise Different(f"{what}: not so in {name} within {SETTLED_WITHIN_S} s")

    def one(self, channel: Channel, request: RemotingCommand) -> RemotingCommand:
        """The answer of one server."""
        request.opaque = self._next_opaque()
        channel.send(encode_frame(request))
        return decode_frame(channel.frame())

    def is_live(self, channel: Channel, cluster: str, addr: str) -> bool:
        return bool(self.one(channel, operations.query_version(cluster, addr)).body)

    def settle(self) -> None:
        """5.x: whatever was queued for unregistration is done, in both; a sentinel behind it says so."""
        if not self.five:
            return
        sentinel = Register(cluster=SENTINEL, broker=SENTINEL, addr=SENTINEL)
        self.each(sentinel.command())
        self._drop_sentinel()

    def _drop_sentinel(self) -> None:
        self.each(operations.unregister(SENTINEL, SENTINEL, 0, SENTINEL))
        self.until("the sentinel is gone", self._without_sentinel)

    def _without_sentinel(self, channel: Channel) -> bool:
        group = self.one(channel, operations.member_group(SENTINEL, SENTINEL))
        return group.code == ResponseCode.SUCCESS and b'"brokerAddrs":{}' in group.body

    def unregister(self, cluster: str, broker: str, id_: int, addr: str, link: Link | None = None) -> None:
        self.ask(operations.unregister(cluster, broker, id_, addr), link)
        self.settle()

    # -- lost channels -----------------------------------------------------------------------------------------------

    def lose(self, link: Link, lives: Sequence[tuple[str, str]], *, reset: bool) -> None:
        """Close both ends, and wait until both servers have drawn the consequences for `lives`, who registered on it.

        FIN is one event, RST two; each takes one broker of the channel. Which one is hash order: where there is a
        choice all of them are taken out of both servers afterwards.
        """
        lives = [live for live in lives if self._is_live_in_both(*live)]
        ghosts = [live for live in lives if self.five and not self.is_held(*live)]
        link.close(reset=reset)
        if ghosts and len(ghosts) < len(lives):  # nothing happens if hash order puts a ghost first
            self.out_of_both(lives)
            return
        events = 1 if self.five or not reset else 2  # 5.x: two at most; the second may find the first still at work
        count = 0 if ghosts else min(events, len(lives))

        def gone(channel: Channel) -> bool:
            return sum(not self.is_live(channel, *live) for live in lives) >= count

        if count:
            self.until(f"{count} of {lives} are gone", gone)
            # it takes the lock, so it comes after what is being done
            self.each(command(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS))
            self.settle()  # the second event of a reset may have queued the same broker again
        if events > len(lives) and not self.five:
            self.until("the remote address is no broker", lambda channel: not self._holds(channel, link.local_address))
        if len(lives) > count and not ghosts:
            alive = [[self.is_live(channel, *live) for live in lives] for channel in self.admin.channels]
            raced = self.five and reset and len(lives) > 1
            self.exceptions["reset-race"] += raced
            if alive[0].count(False) != alive[1].count(False) and not raced:
                raise Different(
                    f"a lost channel took other numbers of {lives}: alive theirs {alive[0]}, ours {alive[1]}"
                )
            self.exceptions["hash-choice"] += alive[0] != alive[1]
            self.out_of_both(lives)
        if not self.five:
            self._agree_on_clusters()

    def _agree_on_clusters(self) -> None:
        """4.9 takes the name of a lost group out of one cluster; where it is in two, hash order chooses which."""
        infos = [self._cluster_info(channel) for channel in self.admin.channels]
        if infos[0] != infos[1]:
            stale = [_stale_names(fastjson.loads(info)) for info in infos]
            if stale[0] != stale[1] and len(stale[0]) == len(stale[1]):
                self.exceptions["hash-choice"] += 1
                for channel, names in zip(self.admin.channels, stale, strict=True):
                    self._drop_names(channel, names)

    def _drop_names(self, channel: Channel, names: Iterable[tuple[str, str]]) -> None:
        for cluster, name in names:
            self.settle()
            self.one(channel, Register(cluster=cluster, broker=name, addr="last").command())
            self.one(channel, operations.unregister(cluster, name, 0, "last"))

    def _is_live_in_both(self, cluster: str, addr: str) -> bool:
        one, other = (self.is_live(channel, cluster, addr) for channel in self.admin.channels)
        if one != other:
            raise Different(f"{cluster} {addr} is live in one only: theirs {one}, ours {other}")
        return one

    def _cluster_info(self, channel: Channel) -> bytes:
        """Java reads its tables without a lock for this one, and fails while a lost channel changes them."""
        while True:
            answer = self.one(channel, command(RequestCode.GET_BROKER_CLUSTER_INFO))
            if answer.code == ResponseCode.SUCCESS:
                return answer.body

    def groups(self, channel: Channel) -> dict[str, dict[str, object]]:
        info = fastjson.loads(self._cluster_info(channel))
        return info["brokerAddrTable"]  # type: ignore[index,no-any-return]

    def cluster_of(self, broker: str) -> str | None:
        group = self.groups(self.admin.channels[0]).get(broker)
        return None if group is None else str(group["cluster"])

    def is_held(self, cluster: str, addr: str) -> bool:
        return any(
            addr in group["brokerAddrs"].values() and (not self.five or group["cluster"] == cluster)  # type: ignore[attr-defined]
            for group in self.groups(self.admin.channels[0]).values()
        )

    def _holds(self, channel: Channel, addr: str) -> bool:
        return any(addr in group["brokerAddrs"].values() for group in self.groups(channel).values())  # type: ignore[attr-defined]

    def out_of_both(self, lives: Sequence[tuple[str, str]]) -> None:
        """Unregister those from both, whatever is left of them."""
        for channel in self.admin.channels:
            for cluster, addr in lives:
                for name, group in self.groups(channel).items():
                    for id_, held in group["brokerAddrs"].items():  # type: ignore[attr-defined]
                        if held == addr:
                            self.one(channel, operations.unregister(str(group["cluster"]), name, int(id_), addr))
                self.one(channel, operations.unregister(cluster, "", 0, addr))
        self.settle()

    # -- cleaning ----------------------------------------------------------------------------------------------------

    def clear(self, lives: Iterable[tuple[str, str]]) -> None:
        """Take everything out of both; Different when something is left in one."""
        lives = list(lives)
        for _ in range(3):
            for channel in self.admin.channels:
                self._clear_one(channel, lives)
            self.settle()
            infos = [self._cluster_info(channel) for channel in self.admin.channels]
            if all(info == b'{"brokerAddrTable":{},"clusterAddrTable":{}}' for info in infos):
                return
        raise Different(f"not empty after everything was unregistered\ntheirs {infos[0]!r}\nours   {infos[1]!r}")

    def _clear_one(self, channel: Channel, lives: list[tuple[str, str]]) -> None:
        info = fastjson.loads(self._cluster_info(channel))
        groups = info["brokerAddrTable"]  # type: ignore[index]
        requests = [operations.unregister(cluster, "", 0, addr) for cluster, addr in lives]
        for name, group in groups.items():
            addrs = group["brokerAddrs"] or {"0": "nowhere"}
            requests += [operations.unregister(group["cluster"], name, int(id_), addr) for id_, addr in addrs.items()]
        for request in requests:
            request.opaque = self._next_opaque()
        channel.send(b"".join(map(encode_frame, requests)))
        for _ in requests:
            channel.frame()
        self._drop_names(channel, _stale_names(info))


def _stale_names(info: object) -> list[tuple[str, str]]:
    """(cluster, broker name) of a cluster info where a cluster has a name whose group is gone, or is another's."""
    groups, clusters = info["brokerAddrTable"], info["clusterAddrTable"]  # type: ignore[index]
    return [
        (cluster, name)
        for cluster, names in sorted(clusters.items())
        for name in sorted(names)
        if name not in groups or groups[name]["cluster"] != cluster
    ]


def _has_mixed_flags(route: RemotingCommand) -> bool:
    body = route.body
    return bool(body) and len({row["topicSysFlag"] for row in fastjson.loads(body)["queueDatas"]}) > 1  # type: ignore[index,call-overload]
