import com.aliyun.openservices.ons.api.Action;
import com.aliyun.openservices.ons.api.Consumer;
import com.aliyun.openservices.ons.api.Message;
import com.aliyun.openservices.ons.api.ONSFactory;
import com.aliyun.openservices.ons.api.Producer;
import com.aliyun.openservices.ons.api.PropertyKeyConst;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Aliyun's ons-client with its defaults, trace included: sends each 200 ms and push-consumes until SIGTERM or the end of
 * stdin. */
public class Ons {
    static final CountDownLatch END = new CountDownLatch(1);

    public static void main(String[] args) {
        try {
            run();
            System.exit(0);
        } catch (Throwable e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(1); // the client's own threads would keep it
        }
    }

    static void run() throws Exception {
        String role = System.getenv().getOrDefault("NEMESRV_ROLE", "producer");
        String topic = System.getenv("NEMESRV_TOPIC");
        Properties properties = new Properties();
        String byHttp = System.getenv("NEMESRV_NAMESRV_HTTP");
        String list = byHttp == null ? System.getenv("NAMESRV_ADDR") : byHttp;
        properties.put(byHttp == null ? PropertyKeyConst.NAMESRV_ADDR : PropertyKeyConst.ONSAddr, list);
        properties.put(PropertyKeyConst.GROUP_ID, System.getenv("NEMESRV_GROUP"));
        properties.put(PropertyKeyConst.AccessKey, "any");
        properties.put(PropertyKeyConst.SecretKey, "any");
        Consumer consumer = role.equals("producer") ? null : ONSFactory.createConsumer(properties);
        Producer producer = role.equals("consumer") ? null : ONSFactory.createProducer(properties);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(producer, consumer)));
        if (consumer != null) {
            consumer.subscribe(topic, "*", (message, context) -> {
                String queue = message.getTopicPartition().getPartition();
                String broker = queue.substring(0, queue.lastIndexOf('#'));
                String number = queue.substring(queue.lastIndexOf('#') + 1);
                String id = new String(message.getBody(), StandardCharsets.UTF_8);
                say("received", id, ",\"broker\":\"" + broker + "\",\"queue\":" + number);
                return Action.CommitMessage;
            });
            consumer.start();
        }
        if (producer != null) {
            producer.start();
        }
        line("{\"f\":\"started\"}");
        Thread input = new Thread(Ons::untilInputEnds);
        input.setDaemon(true);
        input.start();
        long pid = ProcessHandle.current().pid();
        for (long n = 0; !END.await(n == 0 ? 0 : 200, TimeUnit.MILLISECONDS); n++) {
            if (producer != null) {
                send(producer, topic, pid + "-" + n);
            }
        }
    }

    /** Its SendResult does not say to which broker. */
    static void send(Producer producer, String topic, String id) {
        say("send", id, "");
        try {
            producer.send(new Message(topic, "", id, id.getBytes(StandardCharsets.UTF_8)));
            say("sent", id, ",\"type\":\"ok\"");
        } catch (Exception e) {
            String why = String.valueOf(e).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
            say("sent", id, ",\"type\":\"fail\",\"error\":\"" + why + "\"");
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
    static void stop(Producer producer, Consumer consumer) {
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
        line("{\"f\":\"" + what + "\",\"id\":\"" + id + "\"" + more + "}");
    }

    static synchronized void line(String json) {
        System.out.println(json);
        System.out.flush();
    }
}
