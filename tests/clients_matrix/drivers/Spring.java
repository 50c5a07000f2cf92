import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnExpression;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** A Spring Boot application with a producer, consumers of two groups and traces of all: sends each 200 ms until SIGTERM or
 * the end of stdin. Each is a client of its own in this one program. */
@Configuration
@EnableAutoConfiguration
@Import({Spring.First.class, Spring.Second.class})
public class Spring {
    static final CountDownLatch END = new CountDownLatch(1);

    @ConditionalOnExpression("'${NEMESRV_ROLE:producer}' != 'producer'")
    @RocketMQMessageListener(topic = "${NEMESRV_TOPIC}", consumerGroup = "${NEMESRV_GROUP}", enableMsgTrace = true)
    public static class First implements RocketMQListener<MessageExt> {
        @Override
        public void onMessage(MessageExt message) {
            say("received", new String(message.getBody(), StandardCharsets.UTF_8), ",\"queue\":" + message.getQueueId());
        }
    }

    @ConditionalOnExpression("'${NEMESRV_ROLE:producer}' != 'producer'")
    @RocketMQMessageListener(topic = "${NEMESRV_TOPIC}", consumerGroup = "${NEMESRV_GROUP}-2", enableMsgTrace = true)
    public static class Second implements RocketMQListener<MessageExt> {
        @Override
        public void onMessage(MessageExt message) {
        }
    }

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
        boolean sends = !System.getenv().getOrDefault("NEMESRV_ROLE", "producer").equals("consumer");
        Map<String, Object> properties = new HashMap<>();
        properties.put("rocketmq.name-server", System.getenv("NAMESRV_ADDR"));
        properties.put("rocketmq.producer.enable-msg-trace", "true");
        properties.put("logging.level.root", "WARN");
        if (sends) {
            properties.put("rocketmq.producer.group", System.getenv("NEMESRV_GROUP"));
        }
        SpringApplication application = new SpringApplication(Spring.class);
        application.setDefaultProperties(properties);
        application.setBannerMode(Banner.Mode.OFF);
        application.setRegisterShutdownHook(false);
        ConfigurableApplicationContext context = application.run();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(context)));
        line("{\"f\":\"started\"}");
        Thread input = new Thread(Spring::untilInputEnds);
        input.setDaemon(true);
        input.start();
        String topic = System.getenv("NEMESRV_TOPIC");
        long pid = ProcessHandle.current().pid();
        for (long n = 0; !END.await(n == 0 ? 0 : 200, TimeUnit.MILLISECONDS); n++) {
            if (sends) {
                send(context.getBean(RocketMQTemplate.class), topic, pid + "-" + n);
            }
        }
    }

    static void send(RocketMQTemplate template, String topic, String id) {
        say("send", id, "");
        try {
            SendResult result = template.syncSend(topic, id);
            String broker = "\"" + result.getMessageQueue().getBrokerName() + "\"";
            say("sent", id, ",\"type\":\"ok\",\"broker\":" + broker + ",\"queue\":" + result.getMessageQueue().getQueueId());
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
    static void stop(ConfigurableApplicationContext context) {
        END.countDown();
        Thread closing = new Thread(context::close);
        closing.start();
        try {
            closing.join(1500);
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
