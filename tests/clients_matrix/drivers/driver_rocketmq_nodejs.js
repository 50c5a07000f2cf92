// The C++ client 3.0.0 inside Node's rocketmq-nodejs, with its defaults: sends each 200 ms and push-consumes until
// SIGTERM or the end of stdin. It tells neither broker nor queue.
'use strict';
const { Producer, PushConsumer } = require('rocketmq-nodejs');

const { NAMESRV_ADDR, NEMESRV_TOPIC: topic, NEMESRV_GROUP: group, NEMESRV_ROLE: role = 'producer' } = process.env;
const options = { nameServer: NAMESRV_ADDR };
const clients = [];
let ending = false;

const say = event => process.stdout.write(`${JSON.stringify(event)}\n`);
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));

async function send(producer, id) {
  say({ f: 'send', id });
  try {
    const { statusStr } = await producer.send(topic, id, { keys: id });
    say(statusStr === 'OK' ? { f: 'sent', id, type: 'ok' } : { f: 'sent', id, type: 'fail', error: statusStr });
  } catch (error) {
    say({ f: 'sent', id, type: 'fail', error: String(error) });
  }
}

// process.exit() runs the library's destructors, of which ~EventLoop may wait for ever for its own thread.
const leave = () => process.kill(process.pid, 'SIGKILL');

async function stop() {
  if (ending) return;
  ending = true;
  setTimeout(leave, 1500); // what hangs is left behind
  await Promise.allSettled(clients.map(each => each.shutdown()));
  leave();
}

async function main() {
  process.on('SIGTERM', stop);
  process.stdin.on('end', stop).resume();
  let producer;
  if (role !== 'producer') {
    const consumer = new PushConsumer(group, options);
    consumer.on('message', (message, ack) => {
      say({ f: 'received', id: message.body });
      ack.done();
    });
    consumer.subscribe(topic, '*');
    await consumer.start();
    clients.push(consumer);
  }
  if (role !== 'consumer') {
    producer = new Producer(group, options);
    await producer.start();
    clients.push(producer);
  }
  say({ f: 'started' });
  for (let n = 0; producer && !ending; n++) {
    await send(producer, `${process.pid}-${n}`);
    await pause(200);
  }
}

main().catch(error => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
