// Node's ali-ons with its defaults: sends each 200 ms and push-consumes until SIGTERM or the end of stdin.
'use strict';
const { Consumer, Message, Producer } = require('ali-ons');
const { group, log, main, say, topic } = require('./protocol.js');

const { NAMESRV_ADDR: list, NEMESRV_NAMESRV_HTTP: onsAddr } = process.env;
const request = async url => {
  const answer = await fetch(url);
  return { status: answer.status, data: await answer.text() };
};
const options = { httpclient: { request }, ...(list ? { nameSrv: list.split(';') } : { onsAddr }) };

main({
  consumer() {
    const consumer = new Consumer({ ...options, consumerGroup: group });
    consumer.on('error', log);
    consumer.subscribe(topic, '*', async message => {
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
    const { messageQueue: { brokerName: broker, queueId: queue } } = await producer.send(message);
    return { broker, queue: Number(queue) }; // it keeps the header as text
  },
  ready: client => client.ready(),
  close: client => client.close(),
});
