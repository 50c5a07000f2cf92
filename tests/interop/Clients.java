import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;
// since 4.6.0
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
// end
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
// since 4.1.0
import org.apache.rocketmq.client.consumer.MessageSelector;
// end
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.exception.MQClientException;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
// since 4.6.0
import org.apache.rocketmq.client.producer.RequestCallback;
// end
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
// since 4.3.0
import org.apache.rocketmq.client.producer.TransactionListener;
// end
// before 4.3.0
import org.apache.rocketmq.client.producer.TransactionCheckListener;
// end
import org.apache.rocketmq.client.producer.TransactionMQProducer;
// since 4.6.0
import org.apache.rocketmq.client.utils.MessageUtil;
// end
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/**
 * A producer and consumers of every kind in one JVM: args are the NameServers and a prefix of topics and groups.
 * What was sent and what came are tab-separated lines SEND and RECEIVE; commands on stdin: send, consume, orderly, lite,
 * pull, late, restart, transact, request, filter, trace, listen NAME. DONE ends each, and says "lacks" where these
 * clients have no such thing. Between "since" or "before" and "end" is what clients from that version on, or only
 * older ones, have (jars.py).
 */
public class Clients {
    static final int BIG = 10_000;
    static String nameServers;
    static String prefix;
    static DefaultMQProducer producer;
    static final Map<String, Boolean> FAILED = new ConcurrentHashMap<>();

    public static void main(String[] args) {
        try {
            run(args);
            System.exit(0);
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    static void run(String[] args) throws Exception {
        nameServers = args[0];
        prefix = args[1];
        say("READY");
        List<DefaultMQPushConsumer> push = new ArrayList<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals("send")) {
                producer = new DefaultMQProducer(prefix + "-producers");
                producer.setNamesrvAddr(nameServers);
                producer.start();
                send();
            } else if (line.equals("consume")) {
                push.add(concurrent("all", "*"));
                push.add(concurrent("tagged", "TagA || TagC"));
            } else if (line.equals("orderly")) {
                push.add(orderly());
                // since 4.6.0
            } else if (line.equals("lite")) {
                lite();
                // end
            } else if (line.equals("late")) {
                push.add(concurrent("late", "*"));
            } else if (line.startsWith("listen ")) {
                String name = line.substring(7);
                listen(name, "-" + name, "*");
                for (int i = 0; i < 3; i++) {
                    one(name, new Message(prefix + "-" + name, "TagA", name + "-" + i, new byte[] {(byte) i}));
                }
            } else if (line.equals("transact")) {
                transact();
            } else if (line.equals("pull")) {
                pull();
                // since 4.6.0
            } else if (line.equals("request")) {
                request();
                // end
                // since 4.1.0
            } else if (line.equals("filter")) {
                filter();
                // end
                // since 4.4.0
            } else if (line.equals("trace")) {
                trace();
                // end
            } else if (line.equals("restart")) {
                push.remove(0).shutdown();
                one("again", message("again-0", "TagA", "after the restart"));
                push.add(0, concurrent("all", "*"));
            } else {
                say("DONE", line, "lacks");
                continue;
            }
            say("DONE", line);
        }
    }

    static void send() throws Exception {
        for (int i = 0; i < 8; i++) {
            one("sync", message("sync-" + i, i % 2 == 0 ? "TagA" : "TagB", "body " + i));
        }
        CountDownLatch latch = new CountDownLatch(4);
        for (int i = 0; i < 4; i++) {
            String key = "async-" + i;
            producer.send(message(key, "TagA", "body " + i), new SendCallback() {
                @Override
                public void onSuccess(SendResult result) {
                    sent("async", key, result);
                    latch.countDown();
                }

                @Override
                public void onException(Throwable e) {
                    say("FAILED", key, String.valueOf(e));
                    latch.countDown();
                }
            });
        }
        latch.await(10, TimeUnit.SECONDS);
        for (int i = 0; i < 4; i++) {
            producer.sendOneway(message("oneway-" + i, "TagB", "body " + i));
        }
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            batch.add(message("batch-" + i, "TagC", "body " + i));
        }
        // since 4.1.0
        sent("batch", "batch", producer.send(batch));
        // end
        // before 4.1.0
        for (Message each : batch) {
            one("batch", each);
        }
        // end
        byte[] big = new byte[BIG];
        Arrays.fill(big, (byte) 'x');
        one("big", new Message(prefix + "-topic", "TagA", "big-0", big));
        Message unicode = message("unicode-0", "TagA", "gr\u00fc\u00dfe \u6d88\u606f");
        unicode.putUserProperty("greeting", "gr\u00fc\u00dfe");
        one("unicode", unicode);
        Message delayed = message("delayed-0", "TagB", "later");
        delayed.setDelayTimeLevel(1);
        one("delayed", delayed);
        one("failing", message("failing-0", "TagB", "comes twice"));
        for (int i = 0; i < 10; i++) {
            Message message = new Message(prefix + "-ordered", "TagA", "ordered-" + i, new byte[] {(byte) i});
            sent("ordered", "ordered-" + i, producer.send(message, (queues, m, n) -> queues.get(0), null));
        }
        SendResult last = one("last", message("last-0", "TagA", "looked up"));
        MessageQueue queue = last.getMessageQueue();
        // since 4.0.0
        MessageExt viewed = producer.viewMessage(prefix + "-topic", last.getOffsetMsgId());
        // end
        // before 4.0.0
        MessageExt viewed = producer.viewMessage(offsetMsgId(last));
        // end
        say("VIEWED", viewed.getKeys(), new String(viewed.getBody(), StandardCharsets.UTF_8), viewed.getMsgId(),
            String.join(",", new TreeSet<>(viewed.getProperties().keySet())));
        say("OFFSETS", String.valueOf(producer.minOffset(queue)), String.valueOf(producer.maxOffset(queue)),
            String.valueOf(last.getQueueOffset()), String.valueOf(producer.searchOffset(queue, 0)),
            String.valueOf(producer.earliestMsgStoreTime(queue) > 0));
    }

    /** One transaction for each thing a producer can say at once and when it is asked; what it says is in the key. */
    static void transact() throws Exception {
        listen("transacted", "-transacted", "*");
        TransactionMQProducer transactions = new TransactionMQProducer(prefix + "-transactions");
        transactions.setNamesrvAddr(nameServers);
        // before 4.3.0
        transactions.setTransactionCheckListener(message -> checked(message));
        // end
        // since 4.3.0
        transactions.setTransactionListener(new TransactionListener() {
            @Override
            public LocalTransactionState executeLocalTransaction(Message message, Object said) {
                return said(message.getKeys(), 0);
            }

            @Override
            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                return checked(message);
            }
        });
        // end
        transactions.start();
        for (String key : new String[] {"commit", "rollback", "unknow-commit", "unknow-unknow-commit", "unknow-rollback"}) {
            Message message = new Message(prefix + "-transacted", "TagA", key, key.getBytes(StandardCharsets.UTF_8));
            // before 4.3.0
            SendResult result = transactions.sendMessageInTransaction(message, (m, n) -> said(m.getKeys(), 0), null);
            // end
            // since 4.3.0
            SendResult result = transactions.sendMessageInTransaction(message, null);
            // end
            say("TRANSACTION", key, result.getSendStatus().name());
        }
    }

    static LocalTransactionState checked(MessageExt message) {
        String times = message.getProperty("TRANSACTION_CHECK_TIMES");
        say("CHECKED", message.getKeys(), message.getTopic(), times);
        return said(message.getKeys(), Integer.parseInt(times));
    }

    static LocalTransactionState said(String key, int times) {
        switch (key.split("-")[times]) {
            case "commit":
                return LocalTransactionState.COMMIT_MESSAGE;
            case "rollback":
                return LocalTransactionState.ROLLBACK_MESSAGE;
            default:
                return LocalTransactionState.UNKNOW;
        }
    }

    // since 4.6.0
    static void request() throws Exception {
        DefaultMQProducer replier = new DefaultMQProducer(prefix + "-repliers");
        replier.setNamesrvAddr(nameServers);
        replier.setInstanceName("replier");
        replier.start();
        DefaultMQPushConsumer consumer = consumer("asked", "-asked", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                try {
                    byte[] answer = ("answer to " + message.getKeys()).getBytes(StandardCharsets.UTF_8);
                    replier.send(MessageUtil.createReplyMessage(message, answer), 5000);
                } catch (Exception e) {
                    say("FAILED", message.getKeys(), String.valueOf(e));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Message question = new Message(prefix + "-asked", "TagA", "question", new byte[] {1});
        CountDownLatch replied = new CountDownLatch(1);
        // with a selector and a callback: 5.3.3's others give up as soon as the question is sent
        producer.request(question, (queues, m, n) -> queues.get(0), null, new RequestCallback() {
            @Override
            public void onSuccess(Message reply) {
                say("REPLIED", new String(reply.getBody(), StandardCharsets.UTF_8));
                replied.countDown();
            }

            @Override
            public void onException(Throwable e) {
                say("FAILED", "question", String.valueOf(e));
                replied.countDown();
            }
        }, 45_000);  // the next rebalance is 20 s after the first, which may find no member of the group yet
        replied.await(50, TimeUnit.SECONDS);
    }

    // end
    // since 4.1.0
    /** What a consumer that filters by SQL is told at its start; one that starts goes on. */
    static void filter() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(prefix + "-sql");
        consumer.setNamesrvAddr(nameServers);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(prefix + "-topic", MessageSelector.bySql("TAGS = 'TagC' OR greeting IS NOT NULL"));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> received("sql", message));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        try {
            consumer.start();
            say("FILTER", "started");
        } catch (MQClientException e) {
            say("FILTER", "refused", String.valueOf(e.getResponseCode()), e.getErrorMessage());
            consumer.shutdown();
        }
    }

    // end
    // since 4.4.0
    /** A producer and a consumer whose traces go to RMQ_SYS_TRACE_TOPIC, and who reads these. */
    static void trace() throws Exception {
        DefaultMQProducer traced = new DefaultMQProducer(prefix + "-tracing", true, null);
        traced.setNamesrvAddr(nameServers);
        traced.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(prefix + "-traced", true, null);
        consumer.setNamesrvAddr(nameServers);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(prefix + "-traced", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
            ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
        consumer.start();
        DefaultMQPushConsumer reader = new DefaultMQPushConsumer(prefix + "-reading");
        reader.setNamesrvAddr(nameServers);
        reader.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        reader.subscribe("RMQ_SYS_TRACE_TOPIC", "*");
        reader.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                for (String line : new String(message.getBody(), StandardCharsets.UTF_8).split("\2")) {
                    String[] words = line.split("\1");
                    say("TRACE", words[0], words.length > 4 ? words[4] : "", message.getKeys());
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        reader.start();
        SendResult result = traced.send(new Message(prefix + "-traced", "TagA", "traced-0", new byte[] {1}));
        say("TRACED", result.getMsgId());
    }

    // end
    /** Everything that one pull consumer gets that asks each queue once, from its beginning to its end. */
    static void pull() throws Exception {
        DefaultMQPullConsumer consumer = new DefaultMQPullConsumer(prefix + "-pull");
        consumer.setNamesrvAddr(nameServers);
        consumer.start();
        for (MessageQueue queue : consumer.fetchSubscribeMessageQueues(prefix + "-topic")) {
            long next = consumer.minOffset(queue);
            PullResult result = consumer.pull(queue, "*", next, 2);
            while (result.getPullStatus() == PullStatus.FOUND) {
                result.getMsgFoundList().forEach(message -> received("pull", message));
                next = result.getNextBeginOffset();
                result = consumer.pull(queue, "*", next, 2);
            }
            consumer.updateConsumeOffset(queue, next);
            say("PULLED", result.getPullStatus().name(), String.valueOf(next), String.valueOf(consumer.maxOffset(queue)));
        }
        consumer.shutdown();
    }

    static Message message(String key, String tag, String body) {
        return new Message(prefix + "-topic", tag, key, body.getBytes(StandardCharsets.UTF_8));
    }

    static SendResult one(String kind, Message message) throws Exception {
        SendResult result = producer.send(message);
        sent(kind, message.getKeys(), result);
        return result;
    }

    static void sent(String kind, String key, SendResult result) {
        MessageQueue queue = result.getMessageQueue();
        say("SEND", kind, key, result.getSendStatus().name(), result.getMsgId(), offsetMsgId(result),
            queue.getBrokerName(), String.valueOf(queue.getQueueId()), String.valueOf(result.getQueueOffset()));
    }

    static String offsetMsgId(SendResult result) {
        // since 3.5.8
        return String.valueOf(result.getOffsetMsgId());
        // end
        // before 3.5.8
        return result.getMsgId();
        // end
    }

    static void received(String group, MessageExt message) {
        CRC32 crc = new CRC32();
        crc.update(message.getBody());
        say("RECEIVE", group, message.getKeys(), message.getTags(), String.valueOf(message.getReconsumeTimes()),
            String.valueOf(message.getBody().length), String.valueOf(crc.getValue()), message.getTopic(),
            String.valueOf(message.getQueueId()), String.valueOf(message.getQueueOffset()), message.getMsgId(),
            String.valueOf(message.getUserProperty("greeting")),
            String.join(",", new TreeSet<>(message.getProperties().keySet())));
    }

    static DefaultMQPushConsumer consumer(String name, String topic, String expression) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(prefix + "-" + name);
        consumer.setNamesrvAddr(nameServers);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(prefix + topic, expression);
        // before 4.0.0
        consumer.getDefaultMQPushConsumerImpl().registerConsumeMessageHook(new NoHook());
        // end
        return consumer;
    }

    // before 4.0.0
    /** Without one 3.6.2 loses each message whose listener has returned to a NullPointerException, and commits none. */
    static class NoHook implements org.apache.rocketmq.client.hook.ConsumeMessageHook {
        public String hookName() {
            return "none";
        }

        public void consumeMessageBefore(org.apache.rocketmq.client.hook.ConsumeMessageContext context) {
        }

        public void consumeMessageAfter(org.apache.rocketmq.client.hook.ConsumeMessageContext context) {
        }
    }

    // end
    static DefaultMQPushConsumer concurrent(String name, String expression) throws Exception {
        DefaultMQPushConsumer consumer = consumer(name, "-topic", expression);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                received(name, message);
                if (message.getKeys().equals("failing-0") && FAILED.put(name, true) == null) {
                    context.setDelayLevelWhenNextConsume(1);
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    static void listen(String name, String topic, String expression) throws Exception {
        DefaultMQPushConsumer consumer = consumer(name, topic, expression);
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> received(name, message));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
    }

    static DefaultMQPushConsumer orderly() throws Exception {
        DefaultMQPushConsumer consumer = consumer("orderly", "-ordered", "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            for (MessageExt message : messages) {
                if (message.getKeys().equals("ordered-3") && FAILED.put("orderly", true) == null) {
                    context.setSuspendCurrentQueueTimeMillis(100);
                    return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                }
                received("orderly", message);
            }
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        return consumer;
    }

    // since 4.6.0
    static void lite() throws Exception {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(prefix + "-lite");
        consumer.setNamesrvAddr(nameServers);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(prefix + "-topic", "*");
        consumer.start();
        Thread poller = new Thread(() -> {
            while (true) {
                consumer.poll(1000).forEach(message -> received("lite", message));
            }
        });
        poller.setDaemon(true);
        poller.start();
    }

    // end
    static synchronized void say(String... fields) {
        System.out.println(String.join("\t", fields));
        System.out.flush();
    }
}
