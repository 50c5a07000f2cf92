"""What is mutated: one right example of everything that is read."""

import struct
import zlib
from pathlib import Path

from nemesrv.remoting import compression
from nemesrv.remoting.bodies.register import RegisterBrokerBody, TopicConfigSerializeWrapper
from nemesrv.remoting.bodies.route import BrokerData, DataVersion, QueueData, TopicConfig, TopicRouteData
from nemesrv.remoting.codes import LanguageCode, RequestCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.compression import CompressionType
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.headers.broker import SendMessageRequestHeader
from nemesrv.remoting.headers.namesrv import RegisterBrokerRequestHeader
from nemesrv.remoting.message import BLANK_MAGIC, StoredMessage
from nemesrv.remoting.message_batch import BatchItem
from nemesrv.remoting.node.network import Address

GOLDEN = Path(__file__).parent.parent / "interop" / "golden"
CONVERSATIONS = Path(__file__).parent.parent / "remoting" / "golden"

TOPICS = tuple(
    TopicConfig(topic_name=name, perm=perm, topic_sys_flag=flag, attributes=attributes)
    for name, perm, flag, attributes in (
        ("TopicTest", 6, 0, None),
        ("%RETRY%group", 4, 1, {"+message.type": "FIFO"}),
        ('Ünï/\\"çødé😀', 7, 3, {}),
    )
)
MAPPINGS = {"TopicTest": {"topic": "TopicTest", "bname": "broker-a", "epoch": 1, "totalQueues": 4, "currIdMap": {0: 1}}}


def register_body(*, mappings: bool = True) -> RegisterBrokerBody:
    wrapper = TopicConfigSerializeWrapper(
        data_version=DataVersion(timestamp=1_700_000_000_000, counter=7, state_version=1),
        topic_config_table={topic.topic_name: topic for topic in TOPICS},
        topic_queue_mapping_info_map=MAPPINGS if mappings else None,
    )
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=("10.0.0.9:1",))


def long_registrations() -> list[bytes]:
    """One of twelve topics in three kinds."""
    topics = tuple(TopicConfig(topic_name=f"topic-{n}", perm=6 - 2 * (n % 2), order=n % 3 == 0) for n in range(12))
    version = DataVersion(timestamp=1_700_000_000_000, counter=7, state_version=1)
    wrapper = TopicConfigSerializeWrapper.of(topics, version)
    return [RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=("f:1",)).encode()]


ROUTE = TopicRouteData(
    queue_datas=(QueueData(broker_name="broker-a", read_queue_nums=4, write_queue_nums=4, perm=6),),
    broker_datas=(BrokerData(cluster="c", broker_name="broker-a", broker_addrs={0: "10.0.0.1:10911", 1: "b:2"}),),
    filter_server_table={"10.0.0.1:10911": ("10.0.0.9:1",)},
    order_topic_conf="broker-a:4",
)

IDENTITY = {"brokerName": "broker-a", "brokerAddr": "10.0.0.1:10911", "clusterName": "c", "brokerId": "0"}
REGISTER = RegisterBrokerRequestHeader(
    broker_name="broker-a",
    broker_addr="10.0.0.1:10911",
    cluster_name="c",
    ha_server_addr="10.0.0.1:10912",
    broker_id=0,
    enable_acting_master=True,
    heartbeat_timeout_millis=1000,
).to_ext_fields()


def _requests() -> list[tuple[int, dict[str, str], bytes]]:
    registration, mappings = register_body(mappings=False), register_body()
    version = DataVersion(timestamp=5, counter=1).encode()
    kv = {"namespace": "ORDER_TOPIC_CONFIG", "key": "TopicTest"}
    return [
        (RequestCode.REGISTER_BROKER, REGISTER, registration.encode()),
        (RequestCode.REGISTER_BROKER, {**REGISTER, "brokerId": "1", "brokerAddr": "b:2"}, mappings.encode()),
        (RequestCode.REGISTER_BROKER, {**REGISTER, "compressed": "true"}, mappings.encode(compressed=True)),
        (RequestCode.UNREGISTER_BROKER, IDENTITY, b""),
        (RequestCode.QUERY_DATA_VERSION, IDENTITY, version),
        (RequestCode.BROKER_HEARTBEAT, IDENTITY, b""),
        (RequestCode.GET_BROKER_MEMBER_GROUP, IDENTITY, b""),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TopicTest"}, b""),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "TopicTest", "acceptStandardJsonOnly": "true"}, b""),
        (RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "T", "__ZONE_MODE": "true", "__ZONE_NAME": "z"}, b""),
        (RequestCode.GET_BROKER_CLUSTER_INFO, {}, b""),
        (RequestCode.WIPE_WRITE_PERM_OF_BROKER, IDENTITY, b""),
        (RequestCode.ADD_WRITE_PERM_OF_BROKER, IDENTITY, b""),
        (RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, {}, b""),
        (RequestCode.DELETE_TOPIC_IN_NAMESRV, {"topic": "TopicTest", "clusterName": "c"}, b""),
        (RequestCode.REGISTER_TOPIC_IN_NAMESRV, {"topic": "TopicTest"}, ROUTE.encode()),
        (RequestCode.GET_TOPICS_BY_CLUSTER, {"cluster": "c"}, b""),
        (RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS, {}, b""),
        (RequestCode.GET_UNIT_TOPIC_LIST, {}, b""),
        (RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST, {}, b""),
        (RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST, {}, b""),
        (RequestCode.PUT_KV_CONFIG, {**kv, "value": "broker-a:4;broker-b:4"}, b""),
        (RequestCode.GET_KV_CONFIG, kv, b""),
        (RequestCode.DELETE_KV_CONFIG, kv, b""),
        (RequestCode.GET_KVLIST_BY_NAMESPACE, kv, b""),
        (RequestCode.UPDATE_NAMESRV_CONFIG, {}, b"orderMessageEnable=true\nproductEnvName=c\\u00e9\nlistenPort=1\n"),
        (RequestCode.GET_NAMESRV_CONFIG, {}, b""),
        (99, {"x": "y"}, b"body"),
    ]


def frames() -> list[bytes]:
    """Requests that a NameServer answers, in both header types, responses, and what was captured of Java's."""
    made = []
    for number, (code, fields, body) in enumerate(_requests()):
        for kind in SerializeType:
            command = RemotingCommand(
                int(code), LanguageCode.JAVA, 479, number + 7, 0, None, fields, body, serialize_type=kind
            )
            made.append(encode_frame(command))
    for kind in SerializeType:
        response = RemotingCommand(17, LanguageCode.GO, 409, 8, 1, "no route\n😀", {}, ROUTE.encode(), kind)
        made.append(encode_frame(response))
    return made + golden()


def golden() -> list[bytes]:
    """Frames of Apache's programs: one of a file, and of each conversation the first of each code."""
    files = (path.read_text().splitlines() for path in sorted(GOLDEN.glob("*.hex")))
    found = [bytes.fromhex("".join(line for line in lines if not line.startswith("#"))) for lines in files]
    for path in sorted(CONVERSATIONS.glob("*.hex")):
        first: dict[tuple[str, int], bytes] = {}
        for words in map(str.split, path.read_text().splitlines()):
            if len(words) == 3 and words[1] in "<>":
                frame = bytes.fromhex(words[2])
                first.setdefault((words[1], decode_frame(frame).code), frame)
        found += first.values()
    return found


def headers() -> list[bytes]:
    """The header of each frame, in its own type."""
    return [frame[8 : 8 + int.from_bytes(frame[5:8], "big")] for frame in frames()]


def documents() -> list[bytes]:
    """JSON in all its dialects."""
    return [
        *(body for _, _, body in _requests() if body[:1] == b"{"),
        ROUTE.encode(standard_json=True),
        b'{"brokerAddrs":{0:"a:1",1:"b:2"}}',
        b'{{"brokerName":"a","queueId":0,"topic":"T"}:{"maxOffset":1L,"minOffset":.5}}',
        b'{"a":{x:[1,2,{\'y\':\'z\'}]},"b":{"$ref":"$.a"},c:{"$ref":"$.a.x[2]"},}',
        b'[{"k":["v"]},{"$ref":"$[0]"},{"$ref":"$[0].k"},{"$ref":"$[1]"}]',
        b'{"s":"\\ud83d\\ude00\\n\\/\\x41\\u00e9","n":[-1,2.5,1e3,NaN,null,true,undefined]}',
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:{"brokerOffset":9,"consumerOffset":8}}}',
    ]


def inflated_registrations() -> list[bytes]:
    return [zlib.decompress(register_body(mappings=more).encode(compressed=True)) for more in (True, False)]


def records() -> list[bytes]:
    def record(body: bytes, **more: object) -> bytes:
        fields: dict[str, object] = {
            "topic": "TopicTest",
            "body": body,
            "raw_properties": b"UNIQ_KEY\x017F0000\x02TAGS\x01TagA\x02KEYS\x01a b\x02",
            "queue_id": 2,
            "queue_offset": 5,
            "physical_offset": 1024,
            "born_timestamp": 1_700_000_000_000,
            "born_host": Address("10.0.0.9", 50000),
            "store_timestamp": 1_700_000_000_123,
            "store_host": Address("10.0.0.1", 10911),
            **more,
        }
        return StoredMessage(**fields).encode()  # type: ignore[arg-type]

    plain = record(b"hello")
    packed = [
        record(compression.compress(b"x" * 500, kind), sys_flag=compression.compressed_flags(kind))
        for kind in CompressionType
    ]
    v6 = record(b"", born_host=Address("::1", 1), store_host=Address("fe80::2", 2), sys_flag=0x30)
    filler = struct.pack(">ii", 40, BLANK_MAGIC) + bytes(32)
    return [plain, plain + v6, *packed, record(b"long", topic="t" * 200, version=2), plain + filler]


def encode_item(item: BatchItem) -> bytes:
    """Return the item as a batch send (320) has it."""
    size = 22 + len(item.body) + len(item.properties)
    head = struct.pack(">iiiii", size, 0, 0, item.flag, len(item.body))
    return b"".join((head, item.body, struct.pack(">h", len(item.properties)), item.properties))


def batches() -> list[bytes]:
    one = encode_item(BatchItem(0, b"hello", b"TAGS\x01A\x02"))
    return [one, one * 3, encode_item(BatchItem(7, b"", b""))]


def compressed_bodies() -> list[bytes]:
    return [compression.compress(text, kind) for kind in CompressionType for text in (b"x" * 5000, b"", b"hello" * 9)]


def properties_files() -> list[bytes]:
    return [
        b"# a comment\nlistenPort=9876\nbindAddress = 0.0.0.0\n! more\nkvConfigPath: /tmp/a b\\\n   c\n",
        b"orderMessageEnable=true\r\nproductEnvName=\\u00e9\\ud83d\\ude00\\t\\q\nscanNotActiveBrokerInterval 5000\n",
        b"profile=5.x\nneedWaitForService=false\nwaitSecondsForService=45\nunknown=x\\\\\n",
    ]


def ext_fields() -> list[bytes]:
    """Each as `name 0x1F value` items with 0x00 between."""
    header = SendMessageRequestHeader(
        producer_group="g",
        topic="T",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=0,
        sys_flag=0,
        born_timestamp=1,
        flag=0,
        properties="KEYS\x01a",
    )
    every = [header.to_ext_fields(), header.to_v2(), *(fields for _, fields, _ in _requests())]
    return [b"\0".join(f"{key}\x1f{value}".encode() for key, value in fields.items()) for fields in every if fields]
