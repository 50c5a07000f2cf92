import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.spring.annotation.RocketMQMessageListener;
import org.apache.rocketmq.spring.core.RocketMQListener;
import org.apache.rocketmq.spring.core.RocketMQPushConsumerLifecycleListener;
import org.apache.rocketmq.spring.core.RocketMQTemplate;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnExpression;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** A Spring Boot application with a producer, consumers of two groups and traces of all: sends each 200 ms until SIGTERM or
 * the end of stdin. Producer and consumers share one client; with NEMESRV_INSTANCES each has its own, in every role. */
@Configuration
@EnableAutoConfiguration
@Import({Spring.First.class, Spring.Second.class})
public class Spring {
    static final String RECEIVES = "'${NEMESRV_INSTANCES:}' != '' or '${NEMESRV_ROLE:producer}' != 'producer'";

    public abstract static class Listener
            implements RocketMQListener<MessageExt>, RocketMQPushConsumerLifecycleListener {
        @Override
        public void prepareStart(DefaultMQPushConsumer consumer) {
            if (System.getenv("NEMESRV_INSTANCES") != null) {
                consumer.setInstanceName(getClass().getSimpleName());
            }
        }
    }

    @ConditionalOnExpression(RECEIVES)
    @RocketMQMessageListener(topic = "${NEMESRV_TOPIC}", consumerGroup = "${NEMESRV_GROUP}", enableMsgTrace = true)
    public static class First extends Listener {
        @Override
        public void onMessage(MessageExt message) {
            String id = new String(message.getBody(), StandardCharsets.UTF_8);
            Protocol.say("received", id, ",\"queue\":" + message.getQueueId());
        }
    }

    @ConditionalOnExpression(RECEIVES)
    @RocketMQMessageListener(topic = "${NEMESRV_TOPIC}", consumerGroup = "${NEMESRV_GROUP}-2", enableMsgTrace = true)
    public static class Second extends Listener {
        @Override
        public void onMessage(MessageExt message) {
        }
    }

    public static void main(String[] args) {
        Protocol.main(Spring::run);
    }

    static void run() throws Exception {
        Map<String, Object> properties = new HashMap<>();
        properties.put("rocketmq.name-server", System.getenv("NAMESRV_ADDR"));
        properties.put("rocketmq.producer.enable-msg-trace", "true");
        properties.put("logging.level.root", "WARN");
        if (Protocol.SENDS) {
            properties.put("rocketmq.producer.group", Protocol.GROUP);
        }
        SpringApplication application = new SpringApplication(Spring.class);
        application.setDefaultProperties(properties);
        application.setBannerMode(Banner.Mode.OFF);
        application.setRegisterShutdownHook(false);
        ConfigurableApplicationContext context = application.run();
        Protocol.closesBy(context::close);
        Protocol.started(id -> {
            MessageQueue queue = context.getBean(RocketMQTemplate.class).syncSend(Protocol.TOPIC, id).getMessageQueue();
            return Protocol.at(queue.getBrokerName(), queue.getQueueId());
        });
    }
}
