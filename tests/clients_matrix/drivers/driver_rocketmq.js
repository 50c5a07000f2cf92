// Node's rocketmq with its defaults: sends each 200 ms and push-consumes until SIGTERM or the end of stdin.
'use strict';
const co = require('co');
const { Consumer, Message, Producer } = require('rocketmq');
const { group, log, main, say, topic } = require('./protocol.js');

const options = { namesrvAddr: process.env.NAMESRV_ADDR, httpclient: {} }; // asked for, and used for Aliyun's list only

main({
  consumer() {
    const consumer = new Consumer({ ...options, consumerGroup: group });
    consumer.on('error', log);
    consumer.subscribe(topic, '*', function* (message) {
      say({ f: 'received', id: message.body.toString(), queue: message.queueId });
    });
    return consumer;
  },
  producer() {
    const producer = new Producer({ ...options, producerGroup: group });
    producer.on('error', log);
    return producer;
  },
  async send(producer, id) {
    const message = new Message(topic, '', id);
    message.keys = [id];
    const { messageQueue: { brokerName: broker, queueId: queue } } = await co(producer.send(message));
    return { broker, queue: Number(queue) }; // it keeps the header as text
  },
  ready: client => client.ready(),
  close: client => co(client.close()),
});
