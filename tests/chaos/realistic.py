"""A history as large and as shaped as a real run's: broker-crash with traffic, made in memory in a second."""

import random
from itertools import count

from tests.chaos.builder import HistoryBuilder, address_of, cluster

BROKERS = ("broker-a", "broker-b", "broker-c")
CLIENTS = ("producer-0", "producer-1", "consumer-0", "consumer-1", "prober")
KILL = ("f1", "kill", "sigkill", "broker-a")
KILL_S, RESTART_S, END_S = 100.0, 200.0, 300.0


def broker_crash(rows: int, seed: int = 1) -> HistoryBuilder:
    """About `rows` rows of a healthy cluster whose broker-a is killed at 100 s and started again at 200 s."""
    rng = random.Random(seed)
    builder = cluster(name_servers=3, brokers=BROKERS, clients=CLIENTS)
    name_servers = [address_of(f"ns-{i}") for i in range(3)]
    for client in CLIENTS[:-1]:
        _start(builder.at(1 + rng.random()), client, name_servers, rng)
    for number in range(90):
        _start(builder.at(3 + number / 10), "prober", name_servers, rng, op_id=f"start-{number}")
    builder.at(KILL_S).fault(*KILL)
    for index in range(3):
        dropped = {"broker_name": "broker-a", "address": address_of("broker-a"), "value": {"reason": "closed"}}
        builder.at(KILL_S + 0.01 + index / 1000).event(f"ns-{index}", "broker_dropped", **dropped)
        builder.route(f"ns-{index}", "orders", *BROKERS[1:])
    builder.at(RESTART_S).fault(*KILL, end=True).restarted("broker-a").topic("broker-a", "orders")
    for index in range(3):
        builder.at(RESTART_S + 0.1 + index / 1000).route(f"ns-{index}", "orders", *BROKERS)
    for at_s, brokers in ((2, BROKERS), (KILL_S + 30, BROKERS[1:]), (RESTART_S + 30, BROKERS)):
        queues = [[broker, queue_id] for broker in brokers for queue_id in range(4)]
        for index in range(2):
            mine = queues[index * len(queues) // 2 : (index + 1) * len(queues) // 2]
            builder.at(at_s).event(f"consumer-{index}", "assigned", topic="orders", value=mine)
    seconds = int(END_S)
    for second in range(seconds):
        for node in builder.nodes:
            if not (node == "broker-a" and KILL_S <= second <= RESTART_S):
                builder.at(second + rng.random() * 0.01).lag(rng.expovariate(1 / 3), node, until_s=second + 1)
    _traffic(builder, max(0, rows - len(builder.rows)), rng)
    for broker in BROKERS:
        for queue_id in range(4):
            builder.at(END_S - 1).event(
                "prober", "read_done", topic="orders", broker_name=broker, queue_id=queue_id, offset=10**6
            )
    return builder.end(END_S, lag_ms=None)


def _start(builder: HistoryBuilder, node: str, name_servers: list[str], rng: random.Random, **fields: object) -> None:
    listed = rng.sample(name_servers, len(name_servers))
    index = rng.randrange(len(listed))
    value = {"old": None, "index": index, "reason": "first"}
    builder.event(node, "name_server_list", value=listed, **fields)
    builder.event(node, "name_server_chosen", name_server=listed[index], value=value, **fields)
    builder.event(
        node, "name_server_call", f="route", type="ok", name_server=listed[index], duration_ms=2, code=0, **fields
    )


def _traffic(builder: HistoryBuilder, rows: int, rng: random.Random) -> None:
    """Sends, each received once, and pulls: 7 rows a message."""
    messages = rows // 7
    numbers = count()
    for message in range(messages):
        at_s = 5 + (END_S - 10) * message / max(messages, 1)
        brokers = BROKERS[1:] if KILL_S <= at_s < RESTART_S + 30 else BROKERS
        broker, producer, consumer = rng.choice(brokers), rng.choice(CLIENTS[:2]), rng.choice(CLIENTS[2:4])
        number = next(numbers)
        op_id, key = f"{producer}-{number}", f"k-{number}"
        where = {"broker_name": broker, "queue_id": number % 4}
        builder.at(at_s).event(producer, "send", type="invoke", op_id=op_id, topic="orders", msg_key=key)
        builder.event(producer, "send_attempt", type="invoke", op_id=op_id, attempt=0, **where)
        builder.at(at_s + 0.004).event(producer, "send_attempt", type="ok", op_id=op_id, attempt=0, code=0, **where)
        builder.event(producer, "send", type="ok", op_id=op_id, topic="orders", msg_key=key, offset=number, **where)
        builder.event(consumer, "pull", type="invoke", topic="orders", offset=number, **where)
        builder.at(at_s + 0.006).event(consumer, "pull", type="ok", topic="orders", offset=number, code=0, **where)
        held = f"{consumer}/{broker}/{number % 4}"
        builder.event(consumer, "receive", msg_key=key, topic="orders", offset=number, op_id=held, **where)
