"""What a Java program writes of the connections that it dials: a client, or a broker towards NameServers."""

from collections.abc import Iterator

from .entries import Cluster, Entry, number_of, one_of

_STACK = (
    "\tat org.apache.rocketmq.remoting.netty.NettyRemotingAbstract.invokeSyncImpl(NettyRemotingAbstract.java:439)\n"
    "\tat org.apache.rocketmq.remoting.netty.NettyRemotingClient.invokeSync(NettyRemotingClient.java:390)\n"
    "\tat java.base/java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)\n"
    "\tat java.base/java.lang.Thread.run(Thread.java:840)"
)
_EXCEPTIONS = "org.apache.rocketmq.remoting.exception."


def thrown(name: str, said: str) -> str:
    """The lines of a stack trace."""
    return f"{_EXCEPTIONS}{name}: {said}\n{_STACK}"


class Dialler:
    """One program's connections, as it writes of them."""

    def __init__(self, of: Cluster, node: str) -> None:
        self._is_5, self._node = of.is_5, node
        self._ids: dict[str, str] = {}
        self._timed_out: dict[str, float] = {}

    def named(self, peer: str) -> str:
        """A channel's name between brackets: 5.x says its id."""
        return f"addr={peer}, id={self._ids.get(peer, '0badcafe')}" if self._is_5 else peer

    def begin(self, at: float, peer: str, thread: str) -> Iterator[Entry]:
        yield self._entry(at, thread, f"createChannel: begin to connect remote host[{peer}] asynchronously")

    def channel(self, at: float, peer: str, what: str, why: str | None, thread: str) -> Iterator[Entry]:
        """It has opened, or closed."""
        worker = f"NettyClientWorkerThread_{one_of(4, peer, at)}"
        if what == "opened":
            self._ids[peer] = f"{number_of(self._node, peer, at):08x}"
            yield from self.begin(at, peer, thread)
            yield self._entry(at, worker, f"NETTY CLIENT PIPELINE: CONNECT  UNKNOWN => {peer}")
            if self._is_5:
                yield self._entry(at, worker, f"NETTY CLIENT PIPELINE: ACTIVE, {peer}, channelId={self._ids[peer]}")
            else:
                future = f"AbstractBootstrap$PendingRegistrationPromise@{number_of(peer, at):x}(success)"
                yield self._entry(at, thread, f"createChannel: connect remote host[{peer}] success, {future}")
            return
        if self._is_5 and why != "local":
            yield self._entry(at, worker, f"NETTY CLIENT PIPELINE: channelInactive, the channel[{self.named(peer)}]")
        bracket = f"channel[{self.named(peer)}]" if self._is_5 else peer
        yield self._entry(at, worker, f"closeChannel: the channel[{self.named(peer)}] was removed from channel table")
        yield self._entry(at, worker, f"NETTY CLIENT PIPELINE: CLOSE {bracket}")
        gone = self.named(peer) if self._is_5 else "null"
        text = f"eventCloseChannel: the channel[{gone}] has been removed from the channel table before"
        yield self._entry(at, worker, text)
        text = f"closeChannel: close the connection to remote address[{peer}] result: true"
        yield self._entry(at, "NettyClientSelector_1", text)

    def timed_out(self, at: float, peer: str, waited_ms: float, thread: str, *, shown: bool) -> Iterator[Entry]:
        """A request has no answer, and its channel is closed. `shown`: 4.9's clients call a NameServer null."""
        said = peer if shown else "null"
        bracket = f"channel[{self.named(peer)}]" if self._is_5 else said
        text = f"closeChannel: begin close the channel[{self.named(peer)}] Found: true"
        yield self._entry(at, thread, text)
        text = f"invokeSync: close socket because of timeout, {waited_ms:.0f}ms, {bracket}"
        yield self._entry(at, thread, text, "WARN")
        text = f"invokeSync: wait response timeout exception, the channel[{self.named(peer) if self._is_5 else said}]"
        yield self._entry(at, thread, text, "WARN")

    def connect_failed(self, at: float, peer: str, why: str, thread: str) -> Iterator[Entry]:
        """Refused, or nobody answered within 3 s."""
        silent = "refused" not in why
        yield from self.begin(at - 3000 if silent else at, peer, thread)
        if self._is_5:
            return
        future = f"AbstractBootstrap$PendingRegistrationPromise@{number_of(peer, at):x}"
        if silent:
            text = f"createChannel: connect remote host[{peer}] timeout 3000ms, {future}(incomplete)"
        else:
            cause = f"io.netty.channel.AbstractChannel$AnnotatedConnectException: Connection refused: /{peer}"
            text = f"createChannel: connect remote host[{peer}] failed, {future}(failure: {cause})"
        yield self._entry(at, thread, text, "WARN")

    def register_failed(self, at: float, peer: str, why: str, thread: str) -> Iterator[Entry]:
        """A broker's registration at one NameServer."""
        if "timeout" in why:
            waited_ms = 24_000 if self._is_5 else 6_000
            yield from self.timed_out(at, peer, waited_ms, thread, shown=True)
            stack = thrown(
                "RemotingTimeoutException", f"wait response on the channel <{peer}> timeout, {waited_ms}(ms)"
            )
        elif "connect" in why:
            yield from self.connect_failed(at, peer, why, thread)
            stack = thrown("RemotingConnectException", f"connect to {peer} failed")
        else:
            stack = thrown("RemotingSendRequestException", f"send request to <{peer}> failed")
        text = (
            "Failed to register current broker to name server. TargetHost="
            if self._is_5
            else "registerBroker Exception, "
        )
        level = "ERROR" if self._is_5 else "WARN"
        yield Entry(at, level, thread, "RocketmqBroker", f"{text}{peer}\n{stack}")

    def _entry(self, at: float, thread: str, text: str, level: str = "INFO") -> Entry:
        return Entry(at, level, thread, "RocketmqRemoting", text)
