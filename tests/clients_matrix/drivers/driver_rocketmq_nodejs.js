// The C++ client 3.0.0 inside Node's rocketmq-nodejs, with its defaults: sends each 200 ms and push-consumes until
// SIGTERM or the end of stdin. It tells neither broker nor queue.
'use strict';
const { Producer, PushConsumer } = require('rocketmq-nodejs');
const { group, main, say, topic } = require('./protocol.js');

const options = { nameServer: process.env.NAMESRV_ADDR };

main({
  consumer() {
    const consumer = new PushConsumer(group, options);
    consumer.on('message', (message, ack) => {
      say({ f: 'received', id: message.body });
      ack.done();
    });
    consumer.subscribe(topic, '*');
    return consumer;
  },
  producer: () => new Producer(group, options),
  async send(producer, id) {
    const { statusStr } = await producer.send(topic, id, { keys: id });
    if (statusStr !== 'OK') throw statusStr;
  },
  ready: client => client.start(),
  close: client => client.shutdown(),
  // process.exit() runs the library's destructors, of which ~EventLoop may wait for ever for its own thread.
  leave: () => process.kill(process.pid, 'SIGKILL'),
});
