import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.stream.function.StreamBridge;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

/** A Spring Cloud Stream application on its RocketMQ binder, a producer and a consumer: sends each 200 ms until SIGTERM or
 * the end of stdin. */
@Configuration
@EnableAutoConfiguration
public class Stream {
    static final CountDownLatch END = new CountDownLatch(1);

    @Bean
    public Consumer<String> take() {
        return id -> say("received", id, "");
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
        String role = System.getenv().getOrDefault("NEMESRV_ROLE", "producer");
        String topic = System.getenv("NEMESRV_TOPIC");
        String group = System.getenv("NEMESRV_GROUP");
        Map<String, Object> properties = new HashMap<>();
        properties.put("spring.cloud.stream.rocketmq.binder.name-server", System.getenv("NAMESRV_ADDR"));
        properties.put("spring.cloud.function.definition", role.equals("producer") ? "" : "take");
        properties.put("spring.cloud.stream.function.autodetect", "false");
        properties.put("spring.cloud.stream.bindings.take-in-0.destination", topic);
        properties.put("spring.cloud.stream.bindings.take-in-0.group", group);
        properties.put("spring.cloud.stream.bindings.give.destination", topic);
        properties.put("spring.cloud.stream.rocketmq.bindings.give.producer.group", group);
        properties.put("spring.cloud.stream.rocketmq.bindings.give.producer.sync", "true");
        properties.put("logging.level.root", "WARN");
        SpringApplication application = new SpringApplication(Stream.class);
        application.setDefaultProperties(properties);
        application.setBannerMode(Banner.Mode.OFF);
        application.setRegisterShutdownHook(false);
        ConfigurableApplicationContext context = application.run();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(context)));
        line("{\"f\":\"started\"}");
        Thread input = new Thread(Stream::untilInputEnds);
        input.setDaemon(true);
        input.start();
        long pid = ProcessHandle.current().pid();
        for (long n = 0; !END.await(n == 0 ? 0 : 200, TimeUnit.MILLISECONDS); n++) {
            if (!role.equals("consumer")) {
                send(context.getBean(StreamBridge.class), pid + "-" + n);
            }
        }
    }

    /** It does not say to which broker. */
    static void send(StreamBridge bridge, String id) {
        say("send", id, "");
        try {
            say("sent", id, bridge.send("give", id) ? ",\"type\":\"ok\"" : ",\"type\":\"fail\",\"error\":\"false\"");
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
