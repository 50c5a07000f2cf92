import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.io.Reader;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.AbstractSet;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.ClientConfig;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.store.LocalFileOffsetStore;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.consumer.store.RemoteBrokerOffsetStore;
import org.apache.rocketmq.client.exception.MQBrokerException;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.hook.SendMessageContext;
import org.apache.rocketmq.client.hook.SendMessageHook;
import org.apache.rocketmq.client.impl.MQClientManager;
import org.apache.rocketmq.client.impl.consumer.ProcessQueue;
import org.apache.rocketmq.client.impl.factory.MQClientInstance;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageClientIDSetter;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;

/**
 * The workload of a scenario with Apache's own client: one DefaultMQProducer or one DefaultMQPushConsumer of a JVM.
 *
 * <p>It is told its settings in a properties file, and what to do in lines on stdin: start, begin, finish, clock. It
 * says what it does in JSON lines on stdout (docs/conform-protocol.md, and more), each with System.nanoTime as `at`.
 * What the client's API does not tell is read where the client keeps it: its tables are maps that tell of changes, and
 * its offsets a store that tells what it is asked. SIGTERM shuts the client down.
 */
public class Workload {
    static final Properties SAID = new Properties();
    static final CountDownLatch STARTS = new CountDownLatch(1), BEGINS = new CountDownLatch(1);
    static final CountDownLatch OVER = new CountDownLatch(1);
    static final AtomicBoolean FINISHING = new AtomicBoolean();
    static final String SHARDING_KEY = "__SHARDINGKEY";
    static final long LAG_STEP_NS = 20_000_000, LAG_EACH_NS = 1_000_000_000;
    static String name, topic, group;
    static volatile DefaultMQProducer producer;
    static volatile DefaultMQPushConsumer consumer;
    static int begun;

    public static void main(String[] args) throws Exception {
        try (Reader file = new FileReader(args[0], StandardCharsets.UTF_8)) {
            SAID.load(file);
        }
        name = SAID.getProperty("name");
        topic = SAID.getProperty("topic");
        group = SAID.getProperty("group");
        Runtime.getRuntime().addShutdownHook(new Thread(Workload::shutdown));
        daemon("lag", Workload::tellLag);
        daemon("stdin", Workload::hear);
        warmUp();
        say("ready");
        STARTS.await();
        try {
            if (SAID.getProperty("role").equals("producer")) {
                produce();
            } else {
                consume();
            }
        } catch (Exception e) {
            e.printStackTrace();
            say("refused", "error", String.valueOf(e));
            Runtime.getRuntime().halt(1); // the client's own threads would keep it
        }
    }

    /** What a JVM loads and compiles at its first use would hold up the client's first calls by tenths of a second. */
    static void warmUp() throws Exception {
        Class.forName(MQClientInstance.class.getName());
        String queues = "\"queueDatas\":[{\"brokerName\":\"b\",\"perm\":6,\"readQueueNums\":4,\"writeQueueNums\":4}]";
        String brokers = "\"brokerDatas\":[{\"brokerAddrs\":{0:\"h:1\"},\"brokerName\":\"b\",\"cluster\":\"c\"}]";
        byte[] body = ("{" + brokers + "," + queues + "}").getBytes(StandardCharsets.UTF_8);
        Class<?> route = routeClass();
        for (int i = 0; i < 20; i++) {
            RemotingCommand asked = RemotingCommand.createRequestCommand(105, null);
            asked.addExtField("topic", topic);
            asked.setBody(body);
            ByteBuffer frame = asked.encode();
            frame.getInt();
            RemotingSerializable told = RemotingSerializable.decode(RemotingCommand.decode(frame).getBody(), route
                .asSubclass(RemotingSerializable.class));
            told.toJson();
        }
    }

    /** TopicRouteData: 5.x has it elsewhere. */
    static Class<?> routeClass() throws ClassNotFoundException {
        try {
            return Class.forName("org.apache.rocketmq.remoting.protocol.route.TopicRouteData");
        } catch (ClassNotFoundException e) {
            return Class.forName("org.apache.rocketmq.common.protocol.route.TopicRouteData");
        }
    }

    static void daemon(String what, Runnable run) {
        Thread thread = new Thread(run, what);
        thread.setDaemon(true);
        thread.start();
    }

    /** Commands, until there are no more: whoever gave them is gone. */
    static void hear() {
        try {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                if (line.contains("\"clock\"")) {
                    say("clock");
                } else if (line.contains("\"start\"")) {
                    STARTS.countDown();
                } else if (line.contains("\"begin\"")) {
                    BEGINS.countDown();
                } else if (line.contains("\"finish\"")) {
                    FINISHING.set(true);
                    BEGINS.countDown();
                    daemon("finish", Workload::tellFinished);
                }
            }
        } catch (Exception e) {
            e.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }

    static void tellFinished() {
        try {
            OVER.await();
            say("finished", "sends", begun);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** In the hook of SIGTERM: the client leaves as its users have it leave. */
    static void shutdown() {
        FINISHING.set(true);
        try {
            if (producer != null) {
                if (BEGINS.getCount() == 0) {
                    OVER.await(5, TimeUnit.SECONDS);
                }
                producer.shutdown();
            }
            if (consumer != null) {
                consumer.shutdown();
            }
        } catch (Throwable e) {
            e.printStackTrace();
        }
        say("stopped");
    }

    /** How late this JVM's threads are: its collections, and the machine. */
    static void tellLag() {
        long since = System.nanoTime(), late = 0;
        while (true) {
            long asked = System.nanoTime();
            try {
                TimeUnit.NANOSECONDS.sleep(LAG_STEP_NS);
            } catch (InterruptedException e) {
                return;
            }
            long now = System.nanoTime();
            late = Math.max(late, now - asked - LAG_STEP_NS);
            if (now - since >= LAG_EACH_NS) {
                say("lag", "late_ns", late, "lasted_ns", now - since);
                since = now;
                late = 0;
            }
        }
    }

    // --- producer ---------------------------------------------------------------------------------------------------

    static void produce() throws Exception {
        DefaultMQProducer made = new DefaultMQProducer(group);
        configure(made);
        made.getDefaultMQProducerImpl().registerSendMessageHook(new Tries());
        noteRoutes(made);
        made.start();
        producer = made;
        say("started");
        BEGINS.await();
        long period = (long) (1e9 / Double.parseDouble(SAID.getProperty("sendsPerSecond")));
        long due = System.nanoTime() + (long) (period * Double.parseDouble(SAID.getProperty("phase")));
        while (!FINISHING.get()) {
            long wait = due - System.nanoTime();
            if (wait > 0) {
                TimeUnit.NANOSECONDS.sleep(Math.min(wait, 50_000_000)); // so that `finish` is heard
                continue;
            }
            send();
            due = Math.max(due + period, System.nanoTime()); // one that took longer does not make the next ones hurry
        }
        OVER.countDown();
    }

    static void send() throws InterruptedException {
        String life = SAID.getProperty("incarnation");
        String key = name + (life.equals("0") ? "" : "." + life) + "-" + begun;
        begun++;
        byte[] body = key.getBytes(StandardCharsets.UTF_8);
        int size = Integer.parseInt(SAID.getProperty("bodyBytes"));
        if (body.length < size) {
            int from = body.length;
            body = Arrays.copyOf(body, size);
            Arrays.fill(body, from, size, (byte) '.');
        }
        Message message = new Message(topic, name, key, body);
        message.putUserProperty("number", String.valueOf(begun));
        int shards = Integer.parseInt(SAID.getProperty("orderedKeys"));
        int shard = shards == 0 ? 0 : begun % shards;
        if (shards > 0) {
            MessageAccessor.putProperty(message, SHARDING_KEY, name + "-" + shard);
        }
        MessageClientIDSetter.setUniqID(message); // as the client itself does, unless there is one
        String id = MessageClientIDSetter.getUniqID(message);
        say("send", "id", id, "topic", topic, "key", key, "body", body, "properties", message.getProperties());
        try {
            SendResult result = shards == 0 ? producer.send(message)
                : producer.send(message, (queues, m, n) -> queues.get((Integer) n % queues.size()), shard);
            MessageQueue queue = result.getMessageQueue();
            String type = result.getSendStatus().name().equals("SEND_OK") ? "ok" : "info";
            say("sent", "id", id, "type", type, "status", result.getSendStatus().name(), "broker",
                queue.getBrokerName(), "queue", queue.getQueueId(), "offset", result.getQueueOffset());
        } catch (InterruptedException e) {
            throw e;
        } catch (Exception e) {
            say("sent", "id", id, "type", "fail", "error", String.valueOf(e), "code", codeOf(e));
        }
    }

    /** Each try of a send, as the client's own hook tells it: also one whose broker could not be connected to. */
    static class Tries implements SendMessageHook {
        @Override
        public String hookName() {
            return "nemesrv";
        }

        @Override
        public void sendMessageBefore(SendMessageContext context) {
            tell("try", context);
        }

        @Override
        public void sendMessageAfter(SendMessageContext context) {
            Exception error = context.getException();
            SendResult result = context.getSendResult();
            tell("tried", context, "status", result == null ? null : result.getSendStatus().name(), "error",
                error == null ? null : error.getClass().getSimpleName(), "code", error == null ? null : codeOf(error));
        }

        private void tell(String what, SendMessageContext context, Object... more) {
            Object[] fields = {"id", MessageClientIDSetter.getUniqID(context.getMessage()), "broker",
                context.getMq().getBrokerName(), "queue", context.getMq().getQueueId(), "address",
                context.getBrokerAddr()};
            Object[] all = Arrays.copyOf(fields, fields.length + more.length);
            System.arraycopy(more, 0, all, fields.length, more.length);
            say(what, all);
        }
    }

    static Integer codeOf(Exception e) {
        int code = e instanceof MQBrokerException ? ((MQBrokerException) e).getResponseCode()
            : e instanceof MQClientException ? ((MQClientException) e).getResponseCode() : -1;
        return code < 0 ? null : code;
    }

    // --- consumer ---------------------------------------------------------------------------------------------------

    static final long AGAIN_MS = 1_000;

    static void consume() throws Exception {
        while (consumer == null) {
            DefaultMQPushConsumer made = new DefaultMQPushConsumer(group);
            try {
                configure(made);
                made.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                made.subscribe(topic, "*");
                listen(made);
                noteRoutes(made);
                made.start();
                consumer = made;
            } catch (IllegalStateException | MQClientException e) { // no NameServer answers: start it again
                e.printStackTrace();
                say("start_failed", "error", String.valueOf(e));
                made.shutdown();
                Thread.sleep(AGAIN_MS);
            }
        }
        say("started");
        new CountDownLatch(1).await();
    }

    static void listen(DefaultMQPushConsumer made) throws Exception {
        boolean broadcasting = Boolean.parseBoolean(SAID.getProperty("broadcasting"));
        set(made, "messageModel", broadcasting ? "BROADCASTING" : "CLUSTERING");
        MQClientInstance client = instance(made);
        OffsetStore own = broadcasting ? new LocalFileOffsetStore(client, group)
            : new RemoteBrokerOffsetStore(client, group);
        Offsets offsets = new Offsets(own, broadcasting);
        made.setOffsetStore(offsets.store);
        Holdings holdings = new Holdings(offsets);
        replace(field(made.getDefaultMQPushConsumerImpl(), "rebalanceImpl"), "processQueueTable", holdings);
        made.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageQueue queue = context.getMessageQueue();
            for (MessageExt each : messages) {
                say("received", "key", each.getKeys(), "topic", queue.getTopic(), "broker", queue.getBrokerName(),
                    "queue", queue.getQueueId(), "offset", each.getQueueOffset(), "holding", holdings.of(queue), "body",
                    each.getBody(), "properties", each.getProperties(), "listened", each.getTopic());
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
    }

    /** The queues that the consumer holds: the client's own table, which tells what is put into it and taken out. */
    static class Holdings extends Noted<MessageQueue, ProcessQueue> {
        private static final AtomicInteger TAKEN = new AtomicInteger();
        private final transient Map<MessageQueue, Integer> numbers = new ConcurrentHashMap<>();
        private final transient Offsets offsets;

        Holdings(Offsets offsets) {
            this.offsets = offsets;
        }

        Integer of(MessageQueue queue) {
            return numbers.get(queue);
        }

        @Override
        void added(MessageQueue queue, ProcessQueue held) {
            int number = TAKEN.getAndIncrement();
            numbers.put(queue, number);
            tell("taken", queue, number, offsets.begins(queue));
        }

        @Override
        void removed(MessageQueue queue, ProcessQueue held) {
            Integer number = numbers.remove(queue);
            if (number != null) {
                tell("dropped", queue, number, offsets.committed(queue));
            }
        }

        private void tell(String what, MessageQueue queue, int number, Long offset) {
            say(what, "topic", queue.getTopic(), "broker", queue.getBrokerName(), "queue", queue.getQueueId(),
                "holding", number, "offset", offset);
        }
    }

    /** The consumer's offsets: the client's own store, which tells from where a queue is read and what is committed. */
    static class Offsets {
        final OffsetStore store;
        private final OffsetStore own;
        private final boolean broadcasting;
        private final Map<MessageQueue, Long> read = new ConcurrentHashMap<>();
        private final Map<MessageQueue, Long> last = new ConcurrentHashMap<>();
        private final Map<MessageQueue, Long> kept = new ConcurrentHashMap<>();

        Offsets(OffsetStore own, boolean broadcasting) {
            this.own = own;
            this.broadcasting = broadcasting;
            this.store = (OffsetStore) Proxy.newProxyInstance(Workload.class.getClassLoader(),
                new Class<?>[] {OffsetStore.class}, (proxy, method, args) -> asked(method, args));
        }

        private Object asked(Method method, Object[] args) throws Throwable {
            MessageQueue queue = args != null && args[0] instanceof MessageQueue ? (MessageQueue) args[0] : null;
            if (method.getName().equals("removeOffset")) {
                note(queue);
            }
            try {
                Object result = method.invoke(own, args);
                if (method.getName().equals("readOffset") && args[1] != ReadOffsetType.READ_FROM_MEMORY) {
                    read.put(queue, (Long) result);
                } else if (broadcasting && method.getName().equals("persistAll")) {
                    ((Set<?>) args[0]).forEach(each -> keep((MessageQueue) each));
                }
                return result;
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        }

        private void note(MessageQueue queue) {
            long offset = own.readOffset(queue, ReadOffsetType.READ_FROM_MEMORY);
            if (offset >= 0) {
                last.put(queue, offset);
            }
        }

        private void keep(MessageQueue queue) {
            long offset = own.readOffset(queue, ReadOffsetType.READ_FROM_MEMORY);
            Long before = offset < 0 ? null : kept.put(queue, offset);
            if (offset >= 0 && (before == null || before != offset)) {
                say("kept", "topic", queue.getTopic(), "broker", queue.getBrokerName(), "queue", queue.getQueueId(),
                    "offset", offset, "before", before == null ? kept(queue) : before);
            }
        }

        private long kept(MessageQueue queue) {
            Long from = read.get(queue);
            return from == null ? -1 : from;
        }

        /** From where it is read: what was committed, or its beginning (CONSUME_FROM_FIRST_OFFSET). */
        Long begins(MessageQueue queue) {
            last.remove(queue);
            Long from = read.get(queue);
            return from == null ? null : Math.max(0, from);
        }

        /** What was committed of it last; null: nothing. */
        Long committed(MessageQueue queue) {
            if (!last.containsKey(queue)) {
                note(queue);
            }
            return last.remove(queue);
        }
    }

    // --- what both share --------------------------------------------------------------------------------------------

    static void configure(ClientConfig made) throws Exception {
        made.setNamesrvAddr(SAID.getProperty("namesrvAddr"));
        made.setClientIP("127.0.0.1");
        made.setInstanceName(name + "#" + System.nanoTime());
        for (String key : SAID.stringPropertyNames()) {
            if (key.startsWith("set.")) {
                set(made, key.substring(4), SAID.getProperty(key));
            }
        }
    }

    /** A setting by its name in RocketMQ: of the client, else of its connections (NettyClientConfig). */
    static void set(ClientConfig made, String setting, String value) throws Exception {
        if (setting.equals("consumeThreadMax")) {
            call(made, "consumeThreadMin", String.valueOf(Math.min(20, Integer.parseInt(value))));
        }
        if (!call(made, setting, value) && !call(field(instance(made), "nettyClientConfig"), setting, value)) {
            throw new IllegalArgumentException("this version's client has no setting " + setting);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    static boolean call(Object target, String setting, String value) throws Exception {
        String setter = "set" + setting.substring(0, 1).toUpperCase() + setting.substring(1);
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(setter) && method.getParameterCount() == 1) {
                Class<?> type = method.getParameterTypes()[0];
                method.invoke(target, type.isEnum() ? Enum.valueOf((Class) type, value) : parsed(type, value));
                return true;
            }
        }
        return false;
    }

    static Object parsed(Class<?> type, String value) {
        if (type == int.class) {
            return Integer.parseInt(value);
        } else if (type == long.class) {
            return Long.parseLong(value);
        } else if (type == boolean.class) {
            return Boolean.parseBoolean(value);
        } else if (type == long[].class) {
            return Arrays.stream(value.split(",")).map(String::trim).mapToLong(Long::parseLong).toArray();
        }
        return value;
    }

    static MQClientInstance instance(ClientConfig made) {
        return MQClientManager.getInstance().getOrCreateMQClientInstance(made, null);
    }

    /** The client's routes by topic: its own table, which tells what is put into it. */
    static void noteRoutes(ClientConfig made) throws Exception {
        replace(instance(made), "topicRouteTable", new Noted<String, RemotingSerializable>() {
            @Override
            void added(String of, RemotingSerializable route) {
                say("route", "topic", of, "route", route.toJson());
            }

            @Override
            void removed(String of, RemotingSerializable route) {}
        });
    }

    static Field fieldOf(Object of, String what) throws NoSuchFieldException {
        for (Class<?> each = of.getClass(); each != null; each = each.getSuperclass()) {
            for (Field field : each.getDeclaredFields()) {
                if (field.getName().equals(what)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        throw new NoSuchFieldException(of.getClass().getName() + "." + what);
    }

    static Object field(Object of, String what) throws Exception {
        return fieldOf(of, what).get(of);
    }

    static void replace(Object of, String what, Object by) throws Exception {
        fieldOf(of, what).set(of, by);
    }

    /** A table of the client's that tells what is put into it and taken out, whichever way. */
    abstract static class Noted<K, V> extends ConcurrentHashMap<K, V> {
        abstract void added(K key, V value);

        abstract void removed(K key, V value);

        @Override
        public V put(K key, V value) {
            V before = super.put(key, value);
            added(key, value);
            return before;
        }

        @Override
        public V putIfAbsent(K key, V value) {
            V before = super.putIfAbsent(key, value);
            if (before == null) {
                added(key, value);
            }
            return before;
        }

        @Override
        @SuppressWarnings("unchecked")
        public V remove(Object key) {
            V before = super.remove(key);
            if (before != null) {
                removed((K) key, before);
            }
            return before;
        }

        @Override
        @SuppressWarnings("unchecked")
        public boolean remove(Object key, Object value) {
            boolean was = super.remove(key, value);
            if (was) {
                removed((K) key, (V) value);
            }
            return was;
        }

        @Override
        public void clear() {
            for (K key : keySet()) {
                remove(key);
            }
        }

        @Override
        public Set<Map.Entry<K, V>> entrySet() {
            Set<Map.Entry<K, V>> all = super.entrySet();
            return new AbstractSet<>() {
                @Override
                public int size() {
                    return all.size();
                }

                @Override
                public Iterator<Map.Entry<K, V>> iterator() {
                    Iterator<Map.Entry<K, V>> each = all.iterator();
                    return new Iterator<>() {
                        private Map.Entry<K, V> last;

                        @Override
                        public boolean hasNext() {
                            return each.hasNext();
                        }

                        @Override
                        public Map.Entry<K, V> next() {
                            last = each.next();
                            return last;
                        }

                        @Override
                        public void remove() {
                            each.remove();
                            removed(last.getKey(), last.getValue());
                        }
                    };
                }
            };
        }
    }

    // --- JSON lines -------------------------------------------------------------------------------------------------

    /** One line: what, when, and pairs of names and values; a value that is null is left out. */
    static void say(String what, Object... pairs) {
        StringBuilder out = new StringBuilder("{\"f\":").append(quoted(what)).append(",\"at\":");
        out.append(System.nanoTime());
        for (int i = 0; i < pairs.length; i += 2) {
            if (pairs[i + 1] != null) {
                out.append(',').append(quoted((String) pairs[i])).append(':');
                value(out, pairs[i + 1]);
            }
        }
        String line = out.append("}\n").toString();
        synchronized (Workload.class) {
            System.out.print(line);
            System.out.flush();
        }
    }

    static void value(StringBuilder out, Object value) {
        if (value instanceof Number) {
            out.append(value);
        } else if (value instanceof byte[]) {
            out.append(quoted(Base64.getEncoder().encodeToString((byte[]) value)));
        } else if (value instanceof Map) {
            String separator = "{";
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                out.append(separator).append(quoted(String.valueOf(each.getKey()))).append(':');
                out.append(quoted(String.valueOf(each.getValue())));
                separator = ",";
            }
            out.append(separator.equals("{") ? "{}" : "}");
        } else {
            out.append(quoted(String.valueOf(value)));
        }
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < ' ' || Character.isSurrogate(c)) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}
