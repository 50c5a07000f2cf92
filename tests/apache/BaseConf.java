package org.apache.rocketmq.test.base;

import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.common.MQVersion;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.test.client.rmq.RMQAsyncSendProducer;
import org.apache.rocketmq.test.client.rmq.RMQNormalConsumer;
import org.apache.rocketmq.test.client.rmq.RMQNormalProducer;
import org.apache.rocketmq.test.client.rmq.RMQTransactionalProducer;
import org.apache.rocketmq.test.clientinterface.AbstractMQConsumer;
import org.apache.rocketmq.test.clientinterface.AbstractMQProducer;
import org.apache.rocketmq.test.clientinterface.MQConsumer;
import org.apache.rocketmq.test.factory.ConsumerFactory;
import org.apache.rocketmq.test.listener.AbstractListener;
import org.apache.rocketmq.test.util.MQAdmin;
import org.apache.rocketmq.test.util.MQRandomUtils;
import org.apache.rocketmq.test.util.TestUtils;
import org.junit.Assert;

/**
 * Stands before the class of the same name in Apache's tests, which starts servers of its own: these are given.
 * System properties: nemesrv.namesrv (an address), nemesrv.cluster, nemesrv.brokers (two names with a comma).
 */
public class BaseConf {
    public static String nsAddr = given("namesrv");
    protected static String clusterName = given("cluster");
    protected static String broker1Name = given("brokers").split(",")[0];
    protected static String broker2Name = given("brokers").split(",")[1];
    protected static int brokerNum = 2;
    protected static int waitTime = 5;
    protected static int consumeTime = 120_000;
    protected static boolean debug = false;
    protected static List<Object> mqClients = new ArrayList<>();

    static {
        System.setProperty(RemotingCommand.REMOTING_VERSION_KEY, String.valueOf(MQVersion.CURRENT_VERSION));
    }

    static String given(String name) {
        return System.getProperty("nemesrv." + name);
    }

    public static String initTopic() {
        return initTopicWithName(MQRandomUtils.getRandomTopic());
    }

    public static String initTopicWithName(String topic) {
        for (int tries = 0; !MQAdmin.createTopic(nsAddr, clusterName, topic, 8); tries++) {
            Assert.assertTrue("topic " + topic + " cannot be made", tries < 60);
            TestUtils.waitForMoment(500);
        }
        return topic;
    }

    public static String initConsumerGroup() {
        return initConsumerGroup(MQRandomUtils.getRandomConsumerGroup());
    }

    public static String initConsumerGroup(String group) {
        MQAdmin.createSub(nsAddr, clusterName, group);
        return group;
    }

    static <T> T kept(T client) {
        mqClients.add(client);
        return client;
    }

    public static RMQNormalProducer getProducer(String nsAddr, String topic) {
        return getProducer(nsAddr, topic, false);
    }

    public static RMQNormalProducer getProducer(String nsAddr, String topic, boolean useTLS) {
        return kept(new RMQNormalProducer(nsAddr, topic, useTLS));
    }

    public static RMQNormalProducer getProducer(String nsAddr, String topic, String group, String instance) {
        return kept(new RMQNormalProducer(nsAddr, topic, group, instance));
    }

    public static RMQTransactionalProducer getTransactionalProducer(String nsAddr, String topic, TransactionListener l) {
        return kept(new RMQTransactionalProducer(nsAddr, topic, false, l));
    }

    public static RMQAsyncSendProducer getAsyncProducer(String nsAddr, String topic) {
        return kept(new RMQAsyncSendProducer(nsAddr, topic));
    }

    public static RMQNormalConsumer getConsumer(String nsAddr, String topic, String expression, AbstractListener l) {
        return getConsumer(nsAddr, topic, expression, l, false);
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String topic, String expression, AbstractListener l, boolean useTLS) {
        return getConsumer(nsAddr, initConsumerGroup(), topic, expression, l, useTLS);
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String group, String topic, String expression, AbstractListener l) {
        return getConsumer(nsAddr, group, topic, expression, l, false);
    }

    public static RMQNormalConsumer getConsumer(
        String nsAddr, String group, String topic, String expression, AbstractListener l, boolean useTLS) {
        return kept(ConsumerFactory.getRMQNormalConsumer(nsAddr, group, topic, expression, l, useTLS));
    }

    public static void shutdown() {
        for (Object client : mqClients) {
            if (client instanceof AbstractMQProducer) {
                ((AbstractMQProducer) client).shutdown();
            } else if (client instanceof AbstractMQConsumer) {
                ((AbstractMQConsumer) client).shutdown();
            } else {
                ((MQConsumer) client).shutdown();
            }
        }
        mqClients.clear();
    }
}
