import java.nio.charset.StandardCharsets;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Apache's Java client with its defaults: sends each 200 ms and push-consumes until SIGTERM or the end of stdin. */
public class Driver {
    public static void main(String[] args) {
        Protocol.main(Driver::run);
    }

    static void run() throws Exception {
        DefaultMQPushConsumer consumer = Protocol.RECEIVES ? new DefaultMQPushConsumer(Protocol.GROUP) : null;
        DefaultMQProducer producer = Protocol.SENDS ? new DefaultMQProducer(Protocol.GROUP) : null;
        Protocol.closesBy(() -> {
            if (producer != null) {
                producer.shutdown();
            }
            if (consumer != null) {
                consumer.shutdown();
            }
        });
        if (consumer != null) {
            consumer.subscribe(Protocol.TOPIC, "*");
            // before 4.0.0
            consumer.getDefaultMQPushConsumerImpl().registerConsumeMessageHook(new NoHook());
            // end
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                for (MessageExt each : messages) {
                    String id = new String(each.getBody(), StandardCharsets.UTF_8);
                    Protocol.say("received", id, Protocol.at(context.getMessageQueue().getBrokerName(), each.getQueueId()));
                }
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
        }
        if (producer != null) {
            producer.start();
        }
        Protocol.started(id -> {
            byte[] body = id.getBytes(StandardCharsets.UTF_8);
            MessageQueue queue = producer.send(new Message(Protocol.TOPIC, "", id, body)).getMessageQueue();
            return Protocol.at(queue.getBrokerName(), queue.getQueueId());
        });
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
}
