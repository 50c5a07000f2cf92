"""Calls to the chosen NameServer. The Java client's rules decide when a NameServer is chosen, kept and replaced.

              chosen server's channel active?  ── yes ──►  call it
                     │ no
              lock, 3 s at most (else: no channel, the call fails)
                     │
              next entry := chosen, then connect to it
                4.9: the lock is held while connecting; a failed connect tries the next entry, up to list size
                5.3: the lock is free while connecting; a failed connect is this call's failure

The client keeps a NameServer that answers, whatever the response code. The channel of a NameServer that does not answer
in time is closed, so the next call uses the next NameServer. The client does not probe NameServers, and does not return
to an earlier NameServer by itself. Upstream: `NettyRemotingClient.getAndCreateNameserverChannel` (4.9.8),
`getAndCreateNameserverChannelAsync` (5.3.3), `invokeSync`.
"""

import asyncio
from collections.abc import Sequence

from ..remoting import errors
from ..remoting.bodies.route import TopicRouteData, canonical
from ..remoting.codes import RequestCode, ResponseCode
from ..remoting.command import RemotingCommand
from ..remoting.headers.namesrv import GetRouteInfoRequestHeader
from ..remoting.node.clock import Clock
from ..remoting.node.network import Address
from ..remoting.node.node import NodeContext
from ..remoting.node.profile import Profile
from ..remoting.node.recording import record_timed_out
from ..remoting.transport import RemotingClient
from .name_servers import JAVA, NameServerSelector, SelectionRules

LOCK_TIMEOUT_S = 3.0
"""`MQClientInstance.LOCK_TIMEOUT_MILLIS`, `NettyRemotingClient.LOCK_TIMEOUT_MILLIS`."""
API_TIMEOUT_S = 3.0
SHORT_WAIT_S = 0.1
"""5.x does not blame the server for an answer that connecting left no more time than this (and a quarter) for."""


async def try_lock(lock: asyncio.Lock, clock: Clock, timeout_s: float = LOCK_TIMEOUT_S) -> bool:
    """Acquire `lock` within `timeout_s`, as Java's `tryLock(timeout)`. Returns True if the lock was acquired; the
    caller must then release the lock."""
    if not lock.locked():
        return await lock.acquire()
    try:
        async with clock.timeout(timeout_s):
            return await lock.acquire()
    except TimeoutError:
        return False


class _Tries:
    def __init__(self) -> None:
        self.rows: list[dict[str, str]] = []

    def meet(self, address: Address) -> None:
        """Add a try at this NameServer to the call's tries, unless the current try is at this NameServer."""
        row = {"name_server": str(address), "outcome": "not_sent"}
        if not self.rows or self.rows[-1] != row:
            self.rows.append(row)

    def end(self, outcome: str) -> None:
        """Note the result of the current try: connect_failed, no_answer or answered."""
        if self.rows:
            self.rows[-1]["outcome"] = outcome


LastAnswers = dict[tuple[str | None, str | None], bytes]
"""Each NameServer's last answer to look-ups of each topic, so that only a changed answer is recorded."""


class NameServerClient:
    """Calls the chosen NameServer. `selector` has the list of NameServers and the chosen NameServer; `remoting` has all
    channels of the client. Clients that write history rows under one node name share `answers`."""

    def __init__(
        self,
        context: NodeContext,
        remoting: RemotingClient,
        addresses: Sequence[Address],
        profile: Profile,
        *,
        lock_timeout_s: float = LOCK_TIMEOUT_S,
        answers: LastAnswers | None = None,
        rules: SelectionRules = JAVA,
    ) -> None:
        self._context, self._lock_timeout_s = context, lock_timeout_s
        self._answers: LastAnswers = {} if answers is None else answers
        self._remoting = remoting
        self._configured = tuple(addresses)
        self._profile = profile
        self._lock = asyncio.Lock()
        self._connect_failed: Address | None = None
        self.selector = NameServerSelector(context.rng, rules)
        self._after_silence = rules.after_silence
        self._tries_whole_list = profile is Profile.V4_9 if rules.whole_list is None else rules.whole_list

    @property
    def chosen(self) -> Address | None:
        """The NameServer in use; without a connection, the NameServer that was tried last."""
        return self.selector.chosen

    def start(self) -> None:
        """Begin to use the configured list of NameServers. Calls before `start` fail with ConnectError, as calls with
        an empty list do."""
        self.update_addresses(self._configured)

    def update_addresses(self, addresses: Sequence[Address], task: str | None = None) -> None:
        """Take a new list of NameServers; a list of the same servers changes nothing. `task` names the timer that
        fetched the list."""
        before = self.selector.chosen
        if not self.selector.update(addresses):
            return
        shuffled = [str(address) for address in self.selector.addresses]
        self._context.log.info("name server address list: %s", ";".join(shuffled))
        self._context.record("name_server_list", f=task, value=shuffled)
        if before is not None and self.selector.chosen is None and self._profile is Profile.V5_X:
            self._remoting.close_channel(before)

    async def invoke(self, command: RemotingCommand, timeout_s: float = API_TIMEOUT_S) -> RemotingCommand:
        """Return the answer of the chosen NameServer, error codes included.

        Raises ConnectError if no NameServer could be connected to, RequestTimeout, ConnectionLost, TooManyRequests.
        Writes one history row `name_server_call`; its `f` is "route" for route queries, else the request code's name.
        """
        clock, begin_s = self._context.clock, self._context.clock.monotonic_s()
        tries = _Tries()
        try:
            response = await self._invoke(command, timeout_s, tries)
        except errors.RocketMQError as exc:
            if isinstance(exc, errors.RequestTimeout) and tries.rows:
                waited_s, address = clock.monotonic_s() - begin_s, str(tries.rows[-1]["name_server"])
                record_timed_out(self._context.record, address, command.code, waited_s)
            self._record_call(command, tries, "fail" if exc.definite else "info", None, begin_s)
            raise
        tries.end("answered")
        took = "ok" if response.code == ResponseCode.SUCCESS else "fail"
        if took == "ok" and command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC:
            self._record_answer(command, tries, response.body)
        self._record_call(command, tries, took, response.code, begin_s)
        self._context.log.debug("name server call took %.3f s", clock.monotonic_s() - begin_s)
        return response

    async def query_route(self, topic: str, timeout_s: float = API_TIMEOUT_S) -> TopicRouteData:
        """Return the topic's route. Raises TopicNotExist or another ResponseError for an error code, and the errors of
        `invoke`."""
        request = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic=topic))
        response = await self.invoke(request, timeout_s)
        if response.code != ResponseCode.SUCCESS or not response.body:
            raise errors.ResponseError.for_code(response.code, response.remark)
        return TopicRouteData.decode(response.body)

    async def _invoke(self, command: RemotingCommand, timeout_s: float, tries: _Tries) -> RemotingCommand:
        """The answer of one NameServer; by some clients' rules the answer of the next NameServer, if the first
        NameServer did not answer."""
        while True:
            try:
                return await self._invoke_one(command, timeout_s, tries)
            except (errors.RequestTimeout, errors.ConnectionLost):
                if not self._after_silence or len(tries.rows) >= len(self.selector.addresses):
                    raise

    async def _invoke_one(self, command: RemotingCommand, timeout_s: float, tries: _Tries) -> RemotingCommand:
        begin_s = self._context.clock.monotonic_s()
        address = await self._connected(tries)
        left_s = timeout_s - (self._context.clock.monotonic_s() - begin_s)
        if left_s <= 0:
            # 4.9 closes even the channel it has just opened; with two servers, one of them unreachable, a 4.9 client
            # therefore never recovers. 5.x keeps it (5.1.4).
            if self._profile is Profile.V4_9:
                self._remoting.close_channel(address)
            raise errors.TooManyRequests(f"connecting to {address} took the call's {timeout_s:g} s")
        short = self._profile is Profile.V5_X and left_s <= SHORT_WAIT_S and left_s <= timeout_s / 4
        try:
            return await self._remoting.invoke(
                address, command, timeout_s=left_s, close_on_timeout=False if short else None
            )
        except errors.RocketMQError as exc:
            if not exc.definite:
                tries.end("no_answer")
            raise

    async def _connected(self, tries: _Tries) -> Address:
        """Return a NameServer with an active channel, by the profile's rules. `tries` notes every tried NameServer."""
        selector, is_active = self.selector, self._remoting.is_active
        address = selector.sticky(is_active)
        if address is None:
            if not await try_lock(self._lock, self._context.clock, self._lock_timeout_s):
                raise errors.ConnectError("connect to null failed: another call is still choosing a name server")
            try:
                address = selector.sticky(is_active)
                if address is None and self._tries_whole_list:
                    address = await self._connect_any(tries)
                elif address is None:
                    address = self._advance(selector.chosen)
            finally:
                self._lock.release()
        tries.meet(address)
        if not is_active(address):
            await self._connect(address, tries)
        return address

    async def _connect_any(self, tries: _Tries) -> Address:
        """4.9: go round the list once until a connection succeeds; NameServers that this call has tried already are
        skipped."""
        old = self.selector.chosen
        for _ in range(len(self.selector.addresses) - len(tries.rows)):
            address = self._advance(old)
            tries.meet(address)
            try:
                await self._connect(address, tries)
            except errors.TransportError:
                continue
            return address
        text = ", ".join(str(address) for address in self.selector.addresses)
        raise errors.ConnectError(f"connect to [{text}] failed")

    async def _connect(self, address: Address, tries: _Tries) -> None:
        try:
            await self._remoting.connect(address)
        except errors.TransportError:
            tries.end("connect_failed")
            self._connect_failed = address
            raise
        self._connect_failed = None

    def _advance(self, old: Address | None) -> Address:
        """Choose the next NameServer. Log and history call the choice before `old`."""
        if not self.selector.addresses:
            raise errors.ConnectError("connect to null failed: no name server address is set")
        before = self.selector.chosen
        left = "connect_failed" if before == self._connect_failed else "not_active"
        reason = "first" if before is None else left
        choice = self.selector.advance(old)
        self._context.log.info("new name server is chosen. OLD: %s , NEW: %s. index = %s", *choice)
        self._context.record(
            "name_server_chosen",
            name_server=str(choice.new),
            value={"old": None if old is None else str(old), "index": choice.position, "reason": reason},
        )
        return choice.new

    def _record_answer(self, command: RemotingCommand, tries: _Tries, body: bytes) -> None:
        """Record the answer, unless this NameServer's last answer was the same; its row comes before the row of its
        call."""
        name_server, topic = tries.rows[-1]["name_server"], (command.ext_fields or {}).get("topic")
        if self._answers.get((name_server, topic)) == body:
            return
        self._answers[name_server, topic] = body
        try:
            value = canonical(TopicRouteData.decode(body))
        except errors.ProtocolError as exc:
            value = {"unreadable": str(exc)}
        self._context.record("route_answer", name_server=name_server, topic=topic, value=value)

    def _record_call(
        self, command: RemotingCommand, tries: _Tries, type_: str, code: int | None, begin_s: float
    ) -> None:
        try:
            name = RequestCode(command.code).name.lower()
        except ValueError:
            name = str(command.code)
        self._context.record_ended(
            begin_s,
            "name_server_call",
            f="route" if command.code == RequestCode.GET_ROUTEINFO_BY_TOPIC else name,
            type=type_,
            name_server=tries.rows[-1]["name_server"] if tries.rows else None,
            topic=(command.ext_fields or {}).get("topic"),
            code=code,
            value={"tried": tries.rows},
        )
