import com.aliyun.openservices.ons.api.Action;
import com.aliyun.openservices.ons.api.Consumer;
import com.aliyun.openservices.ons.api.Message;
import com.aliyun.openservices.ons.api.ONSFactory;
import com.aliyun.openservices.ons.api.Producer;
import com.aliyun.openservices.ons.api.PropertyKeyConst;
import java.nio.charset.StandardCharsets;
import java.util.Properties;

/** Aliyun's ons-client with its defaults, trace included: sends each 200 ms and push-consumes until SIGTERM or the end of
 * stdin. */
public class Ons {
    public static void main(String[] args) {
        Protocol.main(Ons::run);
    }

    static void run() throws Exception {
        Properties properties = new Properties();
        String byHttp = System.getenv("NEMESRV_NAMESRV_HTTP");
        String list = byHttp == null ? System.getenv("NAMESRV_ADDR") : byHttp;
        properties.put(byHttp == null ? PropertyKeyConst.NAMESRV_ADDR : PropertyKeyConst.ONSAddr, list);
        properties.put(PropertyKeyConst.GROUP_ID, Protocol.GROUP);
        properties.put(PropertyKeyConst.AccessKey, "any");
        properties.put(PropertyKeyConst.SecretKey, "any");
        Consumer consumer = Protocol.RECEIVES ? ONSFactory.createConsumer(properties) : null;
        Producer producer = Protocol.SENDS ? ONSFactory.createProducer(properties) : null;
        Protocol.closesBy(() -> {
            if (producer != null) {
                producer.shutdown();
            }
            if (consumer != null) {
                consumer.shutdown();
            }
        });
        if (consumer != null) {
            consumer.subscribe(Protocol.TOPIC, "*", (message, context) -> {
                String queue = message.getTopicPartition().getPartition();
                String broker = queue.substring(0, queue.lastIndexOf('#'));
                int number = Integer.parseInt(queue.substring(queue.lastIndexOf('#') + 1));
                String id = new String(message.getBody(), StandardCharsets.UTF_8);
                Protocol.say("received", id, Protocol.at(broker, number));
                return Action.CommitMessage;
            });
            consumer.start();
        }
        if (producer != null) {
            producer.start();
        }
        Protocol.started(id -> {
            producer.send(new Message(Protocol.TOPIC, "", id, id.getBytes(StandardCharsets.UTF_8)));
            return ""; // its SendResult does not say to which broker
        });
    }
}
