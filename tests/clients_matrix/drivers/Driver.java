import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Apache's Java client with its defaults: sends each 200 ms and push-consumes until SIGTERM or the end of stdin. */
public class Driver {
    static final long EVERY_MS = 200;
    static final CountDownLatch END = new CountDownLatch(1);

    public static void main(String[] args) {
        try {
            run();
            System.exit(0);
        } catch (Exception e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1); // the client's own threads would keep it
        }
    }

    static void run() throws Exception {
        String role = System.getenv().getOrDefault("NEMESRV_ROLE", "producer");
        String topic = System.getenv("NEMESRV_TOPIC");
        String group = System.getenv("NEMESRV_GROUP");
        DefaultMQPushConsumer consumer = role.equals("producer") ? null : new DefaultMQPushConsumer(group);
        DefaultMQProducer producer = role.equals("consumer") ? null : new DefaultMQProducer(group);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(producer, consumer)));
        if (consumer != null) {
            consumer.subscribe(topic, "*");
            // before 4.0.0
            consumer.getDefaultMQPushConsumerImpl().registerConsumeMessageHook(new NoHook());
            // end
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                for (MessageExt each : messages) {
                    String id = new String(each.getBody(), StandardCharsets.UTF_8);
                    String broker = context.getMessageQueue().getBrokerName();
                    say("received", id, ",\"broker\":" + quoted(broker) + ",\"queue\":" + each.getQueueId());
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
        }
        if (producer != null) {
            producer.start();
        }
        line("{\"f\":\"started\"}");
        Thread input = new Thread(Driver::untilInputEnds);
        input.setDaemon(true);
        input.start();
        long pid = ProcessHandle.current().pid();
        for (long n = 0; !END.await(n == 0 ? 0 : EVERY_MS, TimeUnit.MILLISECONDS); n++) {
            if (producer != null) {
                send(producer, topic, pid + "-" + n);
            }
        }
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
    static void send(DefaultMQProducer producer, String topic, String id) {
        say("send", id, "");
        try {
            SendResult result = producer.send(new Message(topic, "", id, id.getBytes(StandardCharsets.UTF_8)));
            String queue = quoted(result.getMessageQueue().getBrokerName()) + ",\"queue\":" + result.getMessageQueue().getQueueId();
            say("sent", id, ",\"type\":\"ok\",\"broker\":" + queue);
        } catch (Exception e) {
            say("sent", id, ",\"type\":\"fail\",\"error\":" + quoted(String.valueOf(e)));
        }
    }

    static void untilInputEnds() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (java.io.IOException e) {
            System.err.println(e);
        }
        System.exit(0);
    }

    /** Runs in the shutdown hook, on SIGTERM too; what hangs is left behind after 1.5 s. */
    static void stop(DefaultMQProducer producer, DefaultMQPushConsumer consumer) {
        END.countDown();
        Thread both = new Thread(() -> {
            if (producer != null) {
                producer.shutdown();
            }
            if (consumer != null) {
                consumer.shutdown();
            }
        });
        both.start();
        try {
            both.join(1500);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        Runtime.getRuntime().halt(0);
    }

    static void say(String what, String id, String more) {
        line("{\"f\":\"" + what + "\",\"id\":" + quoted(id) + more + "}");
    }

    static synchronized void line(String json) {
        System.out.println(json);
        System.out.flush();
    }

    static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char c : text.toCharArray()) {
            out.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? " " : String.valueOf(c));
        }
        return out.append('"').toString();
    }
}
