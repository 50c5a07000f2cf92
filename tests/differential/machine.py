"""Hypothesis chooses operations; a `Pair` does each on both servers. One example begins and ends with empty servers."""

import itertools
from typing import Any, ClassVar

import hypothesis.strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from nemesrv.remoting.codes import RequestCode, ResponseCode
from nemesrv.remoting.node.profile import Profile

from . import operations
from .operations import Register, Topic, command
from .pair import Pair
from .wire import Link

CLUSTERS = ("c0", "c1 ü/中")
BROKERS = ("b0", "b1", 'b"2\\/é')
TOPICS = (
    *("T0", "T1", "T2", "%RETRY%g", "тема/日本", "q\"\\'<&>", "x\u2028\u007f\u00a0"),
    *("\U0001f600", "rmq_sys_SYNC_BROKER_MEMBER_b0"),
)
SPACED = "with space"
ADDRS = {broker: tuple(f"10.0.{number}.{id_}:10911" for id_ in range(4)) for number, broker in enumerate(BROKERS)}
NAMESPACES = ("ORDER_TOPIC_CONFIG", "ns", "名/ns")
FILTERS = (None, None, (), ("10.1.0.1:1",), ("10.1.0.2:2", "10.1.0.3:3"))
SWITCHES = {
    Profile.V4_9: ("orderMessageEnable",),
    Profile.V5_X: (
        *("orderMessageEnable", "returnOrderTopicConfigToBroker", "supportActingMaster"),
        *("enableAllTopicList", "enableTopicList"),
        *("deleteTopicWithBrokerRegistration", "needWaitForService"),
    ),
}
DEFAULT_ON = ("returnOrderTopicConfigToBroker", "enableAllTopicList", "enableTopicList")
STATE_EVERY = 6
"""Operations between two comparisons of the whole state."""
SILENCES_MAX, LONG_ONES_MAX = 2, 1
"""In one example: they take long."""
MANY = 400
"""Topics of a long registration, so long that ours reads it piece by piece."""
MANY_CHANGES = ("wipe", "delete", "leave out", "perm", "nothing", "unregister", "switch")
LIVES = tuple((cluster, addr) for cluster in CLUSTERS for addrs in ADDRS.values() for addr in addrs)
_numbers = itertools.count()

cluster_names = st.sampled_from((*CLUSTERS[:1] * 5, *CLUSTERS))
broker_names = st.sampled_from(BROKERS)
topic_names = st.sampled_from(TOPICS)
links = st.integers(0, 2)
rows = st.builds(
    Topic,
    name=st.sampled_from((*TOPICS, *TOPICS, SPACED)),
    queues=st.sampled_from(((4, 4), (8, 8), (16, 4), (16, 16), (0, 1))),
    perm=st.sampled_from((6, 6, 6, 4, 2, 7, 15, 0)),
    flag=st.sampled_from((0, 0, 0, 1, 2, 3)),
    sparse=st.sampled_from((False, False, True)),
)
topic_tables = st.one_of(
    st.lists(rows, min_size=2, max_size=5, unique_by=lambda row: row.name),
    st.lists(rows, max_size=2, unique_by=lambda row: row.name),
).map(tuple)
registrations: dict[bool, Any] = {
    five: st.builds(
        Register,
        cluster=cluster_names,
        broker=broker_names,
        id=st.sampled_from((0, 0, 0, 0, 0, 1, 1, 2, 2, 7, -1, 2**40)),
        spelling=st.sampled_from(("plain", "plain", "plain", "upper", "odd")),
        topics=topic_tables,
        counter=st.integers(1, 3),
        timestamp=st.sampled_from((1000, 2000)),
        state=st.sampled_from((0, 0, 1, 2)),
        form=st.sampled_from(("json", "json", "json", "compressed", "compressed", "wrapper", "none")),
        crc=st.sampled_from(("right", "right", "right", "right", "none", "wrong")),
        acting=st.sampled_from((None, False, True, True)),
        zone=st.sampled_from((None, None, "z1", "Z1", "z2 ü")),
        timeout_ms=st.sampled_from((None, 600_000)),
        filters=st.sampled_from(FILTERS),
        filters_null=st.booleans(),
        version=st.sampled_from((479, 479, 409, 393, 79) if five else (409, 409, 393, 79)),
        binary=st.sampled_from((False, False, False, True)),
        five=st.booleans(),
    )
    for five in (False, True)
}
values = st.one_of(st.sampled_from(("b0:4;b1:4", "")), st.text(max_size=12))
keys = st.one_of(topic_names, st.text(max_size=4))


def _addr(r: Register, number: int) -> Register:
    return r.but(addr=ADDRS[r.broker][number], ha=f"{ADDRS[r.broker][number]}2")


class Machine(RuleBasedStateMachine):
    """The rules. A subclass names the pair."""

    pair: ClassVar[Pair]
    operations_done: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.links: dict[int, Link] = {}
        self.owners: dict[tuple[str, str], int] = {}
        self.changed_switches: set[str] = set()
        self.kv_keys: set[tuple[str, str]] = set()
        self.lives: set[tuple[str, str]] = set(LIVES)
        self.static_topics: list[str] = []
        self.brokers_of_links: dict[str, str] = {}
        self.silences = self.long_ones = 0
        self.since_state = 0
        self.number = next(_numbers)
        if self.pair.admin is None:
            raise AssertionError("no servers")

    @property
    def five(self) -> bool:
        return self.pair.five

    def link(self, number: int) -> Link:
        if number not in self.links:
            self.links[number] = self.pair.link()
        return self.links[number]

    def done(self) -> None:
        """After each operation."""
        type(self).operations_done += 1
        self.since_state += 1
        if self.since_state >= STATE_EVERY:
            self.compare_state()

    def compare_state(self) -> None:
        self.since_state = 0
        topics = (*TOPICS, SPACED, *self.static_topics)
        self.pair.compare_state(topics, sorted(self.lives), (*CLUSTERS, "nowhere"))

    def teardown(self) -> None:
        try:
            self.compare_state()
        finally:
            try:
                self._reset()
            except Exception:  # whatever it was: the next example finds two new servers
                self.pair.restart()
                prepare(self.pair)
            for link in self.links.values():  # only now, when nobody lives on them
                link.close()

    def _reset(self) -> None:
        for key in self.changed_switches:
            self.pair.each(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, f"{key}={_default(key)}".encode()))
        for namespace, key in self.kv_keys:
            self.pair.each(operations.kv(RequestCode.DELETE_KV_CONFIG, namespace, key))
        self.pair.clear(sorted(self.lives))

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _register(self, r: Register, link: int) -> ResponseCode | int:
        if not self.five and r.form == "compressed":
            r = r.but(five=False)  # what 5.x adds to a topic's line is read by ours only
        spaced = r.form == "compressed" and any(" " in topic.name for topic in r.topics)
        if r.form == "wrapper":
            r = r.but(filters=None)
        allowed = ("undecodable-body",) if spaced else ()
        theirs, _ = self.pair.ask(r.command(), self.link(link), allowed=allowed)
        if theirs.code == ResponseCode.SUCCESS:
            self.owners[(r.cluster if self.five else "", r.addr)] = link
            self.lives.add((r.cluster, r.addr))
        return theirs.code

    def _make(self, data: st.DataObject) -> Register:
        r: Register = data.draw(registrations[self.five])
        return _addr(r, data.draw(st.integers(0, 3)))

    @rule(data=st.data(), link=links)
    def register(self, data: st.DataObject, link: int) -> None:
        self._register(self._make(data), link)
        self.done()

    @rule(data=st.data(), link=links)
    def register_a_master(self, data: st.DataObject, link: int) -> None:
        r = self._make(data)
        self._register(r.but(id=0, form="json", crc="right"), link)
        self.done()

    @rule(data=st.data(), link=links, again=st.integers(1, 3))
    def register_again_with_changes(self, data: st.DataObject, link: int, again: int) -> None:
        """The same broker over and over: other version, id, address, topics."""
        r = self._make(data)
        self._register(r, link)
        for _ in range(again):
            change = data.draw(st.sampled_from(("nothing", "counter", "state", "id", "addr", "topics", "acting")))
            if change == "counter":
                r = r.but(counter=r.counter + 1)
            elif change == "state":
                r = r.but(state=data.draw(st.integers(0, 2)))
            elif change == "id":
                r = r.but(id=data.draw(st.integers(0, 2)))
            elif change == "addr":
                r = _addr(r, data.draw(st.integers(0, 3)))
            elif change == "topics":
                r = r.but(topics=data.draw(topic_tables))
            elif change == "acting":
                r = r.but(acting=not r.acting)
            self._register(r, link)
            self.done()

    @precondition(lambda self: self.long_ones < LONG_ONES_MAX)
    @rule(data=st.data(), link=links, again=st.integers(2, 4))
    def register_many_topics(self, data: st.DataObject, link: int, again: int) -> None:
        """And again with little changed; what an admin does in between must not be lost."""
        self.long_ones += 1
        r = self._make(data)
        r = r.but(id=r.id if r.id == 1 else 0, crc="right", form="json", binary=False)
        table = {number: Topic(name=f"many-{number:03}", queues=(4, 4 + number % 3)) for number in range(MANY)}
        for _ in range(again + 1):
            self._register(r.but(topics=tuple(table.values())), link)
            self.compare_state()
            number = data.draw(st.integers(0, MANY - 1))
            name = f"many-{number:03}"
            change = data.draw(st.sampled_from(MANY_CHANGES))
            if change == "wipe":
                self.pair.ask(command(RequestCode.WIPE_WRITE_PERM_OF_BROKER, {"brokerName": r.broker}))
            elif change == "delete":
                self.pair.ask(command(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": name}))
            elif change == "leave out":
                table.pop(number, None)
            elif change == "perm":
                table[number] = Topic(name=name, perm=data.draw(st.sampled_from((2, 4, 6))))
            elif change == "switch" and self.five:
                key = "deleteTopicWithBrokerRegistration"
                self.changed_switches.add(key)
                self.pair.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, f"{key}=true".encode()))
            elif change == "unregister":
                self.pair.unregister(r.cluster, r.broker, r.id, r.addr)
            r = r.but(counter=r.counter + data.draw(st.integers(0, 1)))
            self.pair.ask(operations.route(name))
            self.done()
        self.pair.ask_all([operations.route(f"many-{number:03}") for number in range(0, MANY, 7)])

    @rule(data=st.data(), broker=broker_names, link=links, cluster=cluster_names)
    def register_under_the_address_of_a_channel(
        self, data: st.DataObject, broker: str, link: int, cluster: str
    ) -> None:
        """4.9 takes the remote address of a lost channel that no broker lives on for a broker's."""
        addr = self.link(data.draw(links)).local_address
        broker = self.brokers_of_links.setdefault(addr, broker)  # in two groups, hash order would choose
        held = Register(cluster=cluster, broker=broker, id=3, addr=addr)
        self._register(held, link)
        self.done()

    @rule(data=st.data(), cluster=cluster_names, broker=broker_names, id_=st.sampled_from((0, 0, 1, 2, 7)))
    def unregister(self, data: st.DataObject, cluster: str, broker: str, id_: int) -> None:
        addr = data.draw(st.sampled_from(ADDRS[broker]))
        link = self.link(0) if data.draw(st.booleans()) else None
        self.pair.unregister(cluster, broker, id_, addr, link)
        self.done()

    @rule(number=links, reset=st.booleans())
    def lose_a_connection(self, number: int, reset: bool) -> None:
        link = self.links.pop(number, None)
        if link is not None:
            lives = [live for live, owner in self.owners.items() if owner == number]
            for live in lives:
                del self.owners[live]
            self.pair.lose(link, sorted(lives), reset=reset)
        self.done()

    @precondition(lambda self: self.five and self.silences < SILENCES_MAX)
    @rule(data=st.data())
    def a_broker_is_silent_for_too_long(self, data: st.DataObject) -> None:
        """On a channel of its own, which the servers close."""
        r = self._make(data).but(timeout_ms=0, addr="10.9.9.9:10911", crc="right", binary=False)
        link = self.pair.link()
        self.silences += 1
        of_cluster = self.pair.cluster_of(r.broker) in (None, r.cluster)  # of another, it would never be taken out
        allowed = ("undecodable-body",) if r.form == "compressed" else ()
        taken = self.pair.ask_before_the_end(r.command(), link, allowed=allowed)
        self.lives.add((r.cluster, r.addr))
        if taken and of_cluster and self.pair.is_held(r.cluster, r.addr):
            for channel in link.channels:
                channel.wait_for_end()
            self.pair.until("it expired", lambda channel: not self.pair.is_live(channel, r.cluster, r.addr))
        link.close()
        self.pair.out_of_both([(r.cluster, r.addr)])
        self.done()

    @rule(data=st.data(), cluster=cluster_names, broker=broker_names)
    def query_data_version(self, data: st.DataObject, cluster: str, broker: str) -> None:
        addr = data.draw(st.sampled_from(ADDRS[broker]))
        state = {"stateVersion": data.draw(st.integers(0, 2))} if self.five else {}
        held = {"counter": data.draw(st.integers(1, 3)), "timestamp": 1000, **state}
        self.pair.ask(operations.query_version(cluster, addr, held))
        self.done()

    @precondition(lambda self: self.five)
    @rule(data=st.data(), cluster=cluster_names, broker=broker_names)
    def heartbeat(self, data: st.DataObject, cluster: str, broker: str) -> None:
        addr = data.draw(st.sampled_from(ADDRS[broker]))
        fields = {"clusterName": cluster, "brokerAddr": addr, "brokerName": broker}
        self.pair.ask(command(RequestCode.BROKER_HEARTBEAT, fields))
        self.done()

    @precondition(lambda self: self.five)
    @rule(cluster=cluster_names, broker=st.sampled_from((*BROKERS, "nobody")))
    def member_group(self, cluster: str, broker: str) -> None:
        self.pair.ask(operations.member_group(cluster, broker))
        self.done()

    @rule(broker=st.sampled_from((*BROKERS, "nobody")), add=st.booleans())
    def set_write_perm(self, broker: str, add: bool) -> None:
        code = RequestCode.ADD_WRITE_PERM_OF_BROKER if add else RequestCode.WIPE_WRITE_PERM_OF_BROKER
        self.pair.ask(command(code, {"brokerName": broker}))
        self.done()

    # -- topics ------------------------------------------------------------------------------------------------------

    @rule(topic=topic_names, cluster=st.sampled_from((None, *CLUSTERS, "nowhere", "")))
    def delete_topic(self, topic: str, cluster: str | None) -> None:
        self.pair.ask(command(RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": topic, "clusterName": cluster}))
        self.done()

    @precondition(lambda self: self.five)
    @rule(
        topic=topic_names, table=st.lists(st.tuples(st.sampled_from((*BROKERS, *BROKERS, "nobody")), rows), max_size=3)
    )
    def register_topic(self, topic: str, table: list[tuple[str, Topic]]) -> None:
        self.pair.ask(operations.register_topic(topic, table))
        self.done()

    @precondition(lambda self: self.five)
    @rule(data=st.data(), link=links, count=st.integers(0, 2), compressed=st.booleans())
    def register_static_topics(self, data: st.DataObject, link: int, count: int, compressed: bool) -> None:
        """Nothing ever removes a mapping, so these topics are this example's own."""
        names = tuple(f"static-{self.number}-{number}" for number in range(count + 1))
        self.static_topics = sorted({*self.static_topics, *names})
        form = "compressed" if compressed else "json"
        r = self._make(data).but(form=form, five=True, version=479, mapping=names)
        table = tuple(topic for topic in r.topics if " " not in topic.name)
        self._register(r.but(topics=(*table, *(Topic(name=name) for name in names))), link)
        self.done()

    @rule(
        data=st.data(),
        version=st.sampled_from((479, 401, 399, 0, 37)),
        standard=st.sampled_from((None, True, False, "TRUE", "yes")),
        binary=st.booleans(),
        link=links,
    )
    def route(self, data: st.DataObject, version: int, standard: bool | str | None, binary: bool, link: int) -> None:
        topic = data.draw(st.one_of(topic_names, st.text(max_size=6)))
        zone = data.draw(st.sampled_from((None, None, "z1", "z2 ü", "z3", " ")))
        mode = data.draw(st.sampled_from((None, True, True, "True", False)))
        request = operations.route(topic, version=version, standard=standard, zone=zone, zone_mode=mode, binary=binary)
        self.pair.ask(request, self.link(link), allowed=_missing(binary, topic))
        self.done()

    @rule(code=st.sampled_from((304, 106)), binary=st.booleans())
    def list_something(self, code: int, binary: bool) -> None:
        if code == 106:
            self.pair.ask(command(code, None, binary=binary))
        self.compare_state()
        self.done()

    # -- KV and settings ---------------------------------------------------------------------------------------------

    @rule(
        code=st.sampled_from(
            (RequestCode.PUT_KV_CONFIG,) * 3 + (RequestCode.GET_KV_CONFIG, RequestCode.DELETE_KV_CONFIG)
        ),
        namespace=st.sampled_from(NAMESPACES),
        key=keys,
        value=values,
    )
    def kv_config(self, code: int, namespace: str, key: str, value: str) -> None:
        if code == RequestCode.PUT_KV_CONFIG:
            self.kv_keys.add((namespace, key))
            self.pair.ask(operations.kv(code, namespace, key, value))
            self.pair.ask(operations.kv(RequestCode.GET_KV_CONFIG, namespace, key))
        else:
            self.pair.ask(operations.kv(code, namespace, key))
        self.pair.ask(operations.kv(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace))
        self.done()

    @rule(namespace=st.text(max_size=8), key=keys)
    def kv_of_an_unknown_namespace(self, namespace: str, key: str) -> None:
        self.pair.ask(operations.kv(RequestCode.GET_KV_CONFIG, f"?{namespace}", key))
        self.pair.ask(operations.kv(RequestCode.GET_KVLIST_BY_NAMESPACE, f"?{namespace}"))
        self.done()

    @rule(data=st.data(), on=st.booleans())
    def switch(self, data: st.DataObject, on: bool) -> None:
        key = data.draw(st.sampled_from(SWITCHES[self.pair.profile]))
        self.changed_switches.add(key)
        self.pair.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, f"{key}={str(on).lower()}".encode()))
        self.pair.ask(command(RequestCode.GET_NAMESRV_CONFIG, {}), allowed=("own-keys", "settings-text"))
        self.done()

    @rule(
        key=st.sampled_from(("productEnvName", "productEnvName", "noSuchKey", "serverWorkerThreads", "# comment")),
        value=st.one_of(
            st.text(st.characters(max_codepoint=126), max_size=8), st.text("\\ :=#!\tu0041nab\n\r\f", max_size=10)
        ),
        sign=st.sampled_from(("=", ":", " ", " = ", "")),
    )
    def set_something_to_any_text(self, key: str, value: str, sign: str) -> None:
        """Java's properties in every spelling; a number only gets numbers."""
        if key == "serverWorkerThreads":
            value, sign = str(8 + len(value)), "="
        self.changed_switches |= {"productEnvName", "serverWorkerThreads"}
        body = f"{key}{sign}{value}".encode()
        if any(name in body.decode() for name in ("Path", "Home", "BlackList")):
            return
        self.pair.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, body), allowed=("bad-value",))
        self.pair.ask(command(RequestCode.GET_NAMESRV_CONFIG, {}), allowed=("own-keys", "settings-text"))
        self.done()

    @rule(key=st.sampled_from(("configStorePath", "kvConfigPath", "configBlackList", "rocketmqHome", "noSuchKey")))
    def update_a_key_that_cannot_be(self, key: str) -> None:
        if self.five or key.endswith("Path"):  # 4.9.7 protects only the paths
            self.pair.ask(command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, f"{key}=x".encode()))
        self.done()

    # -- strange requests --------------------------------------------------------------------------------------------

    @rule(code=st.sampled_from((1, 9, 40, 99, 300, 999, 100_000)), link=links)
    def ask_for_what_is_not_there(self, code: int, link: int) -> None:
        if self.five:
            self.pair.ask(command(code, {}), self.link(link))
        else:
            self.pair.silence(code, self.link(link))
        self.done()

    @rule(code=st.sampled_from((101, 102, 105, 205, 216, 219, 224, 322, 327)))
    def leave_out_every_field(self, code: int) -> None:
        body = b'{"counter":1,"timestamp":1}' if code == 322 else b""
        self.pair.ask(command(code, {}, body), allowed=("missing-field",))
        self.done()


def _missing(binary: bool, *fields: str) -> tuple[str, ...]:
    """An empty text in a binary header is read as null by Java."""
    return ("missing-field",) if binary and "" in fields else ()


def _default(key: str) -> str:
    values = {"productEnvName": "center", "serverWorkerThreads": "8"}
    return values.get(key) or str(key in DEFAULT_ON).lower()


def prepare(pair: Pair) -> None:
    """What only new servers can show; then every namespace is there from the start, as none goes away again."""
    pair.ask(Register().command())  # there is no ORDER_TOPIC_CONFIG to answer with
    pair.unregister("c0", "b0", 0, "10.0.0.0:10911")
    for namespace in NAMESPACES:
        pair.ask(operations.kv(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace))
        pair.ask(operations.kv(RequestCode.DELETE_KV_CONFIG, namespace, "k"))
        pair.ask(operations.kv(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace))
    for namespace in NAMESPACES:
        pair.ask(operations.kv(RequestCode.PUT_KV_CONFIG, namespace, "k", "v"))
        pair.ask(operations.kv(RequestCode.DELETE_KV_CONFIG, namespace, "k"))
    if pair.five:
        wait = command(RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"waitSecondsForService=1000000")
        pair.ask(wait)


def machine_for(pair: Pair) -> type[Machine]:
    """A machine of its own for each pair: hypothesis takes a class."""
    name = f"Machine{pair.profile.name}"
    return type(name, (Machine,), {"pair": pair, "operations_done": 0})
