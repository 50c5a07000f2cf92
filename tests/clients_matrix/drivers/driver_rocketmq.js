// Node's rocketmq with its defaults: sends each 200 ms and push-consumes until SIGTERM or the end of stdin.
'use strict';
const co = require('co');
const { Consumer, Message, Producer } = require('rocketmq');

const { NEMESRV_TOPIC: topic, NEMESRV_GROUP: group, NEMESRV_ROLE: role = 'producer' } = process.env;
const options = { namesrvAddr: process.env.NAMESRV_ADDR, httpclient: {} }; // asked for, and used for Aliyun's list only
const clients = [];
let ending = false;

const say = event => process.stdout.write(`${JSON.stringify(event)}\n`);
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
const log = error => process.stderr.write(`${error.stack}\n`);

async function send(producer, id) {
  const message = new Message(topic, '', id);
  message.keys = [id];
  say({ f: 'send', id });
  try {
    const { messageQueue: { brokerName: broker, queueId: queue } } = await co(producer.send(message));
    say({ f: 'sent', id, type: 'ok', broker, queue: Number(queue) }); // it keeps the header as text
  } catch (error) {
    say({ f: 'sent', id, type: 'fail', error: String(error) });
  }
}

async function stop() {
  if (ending) return;
  ending = true;
  setTimeout(() => process.exit(0), 1500); // what hangs is left behind
  await Promise.allSettled(clients.map(each => co(each.close())));
  process.exit(0);
}

async function main() {
  process.on('SIGTERM', stop);
  process.stdin.on('end', stop).resume();
  let producer;
  if (role !== 'producer') {
    const consumer = new Consumer({ ...options, consumerGroup: group });
    consumer.on('error', log);
    consumer.subscribe(topic, '*', function* (message) {
      say({ f: 'received', id: message.body.toString(), queue: message.queueId });
    });
    clients.push(consumer);
    await consumer.ready();
  }
  if (role !== 'consumer') {
    producer = new Producer({ ...options, producerGroup: group });
    producer.on('error', log);
    clients.push(producer);
    await producer.ready();
  }
  say({ f: 'started' });
  for (let n = 0; producer && !ending; n++) {
    await send(producer, `${process.pid}-${n}`);
    await pause(200);
  }
}

main().catch(error => {
  log(error);
  process.exit(1);
});
