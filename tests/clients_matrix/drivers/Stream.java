import java.util.HashMap;
import java.util.Map;
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
    @Bean
    public Consumer<String> take() {
        return id -> Protocol.say("received", id, "");
    }

    public static void main(String[] args) {
        Protocol.main(Stream::run);
    }

    static void run() throws Exception {
        Map<String, Object> properties = new HashMap<>();
        properties.put("spring.cloud.stream.rocketmq.binder.name-server", System.getenv("NAMESRV_ADDR"));
        properties.put("spring.cloud.function.definition", Protocol.RECEIVES ? "take" : "");
        properties.put("spring.cloud.stream.function.autodetect", "false");
        properties.put("spring.cloud.stream.bindings.take-in-0.destination", Protocol.TOPIC);
        properties.put("spring.cloud.stream.bindings.take-in-0.group", Protocol.GROUP);
        properties.put("spring.cloud.stream.bindings.give.destination", Protocol.TOPIC);
        properties.put("spring.cloud.stream.rocketmq.bindings.give.producer.group", Protocol.GROUP);
        properties.put("spring.cloud.stream.rocketmq.bindings.give.producer.sync", "true");
        properties.put("logging.level.root", "WARN");
        SpringApplication application = new SpringApplication(Stream.class);
        application.setDefaultProperties(properties);
        application.setBannerMode(Banner.Mode.OFF);
        application.setRegisterShutdownHook(false);
        ConfigurableApplicationContext context = application.run();
        Protocol.closesBy(context::close);
        Protocol.started(id -> {
            if (!context.getBean(StreamBridge.class).send("give", id)) {
                throw new IllegalStateException("false");
            }
            return ""; // it does not say to which broker
        });
    }
}
