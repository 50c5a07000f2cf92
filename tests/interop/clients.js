// Node's rocketmq or ali-ons, whichever is installed here, with the arguments, commands and lines of Clients.java: it
// has sends that wait, and concurrent push consumers.
'use strict';
const { existsSync } = require('fs');
const { createInterface } = require('readline');
const { crc32 } = require('zlib');

const [, , namesrvAddr, prefix] = process.argv;
const isOld = existsSync(`${__dirname}/node_modules/rocketmq`);
const { Consumer, Message, Producer } = require(isOld ? 'rocketmq' : 'ali-ons');
const failed = new Set();
let producer;
let all;

const options = isOld ? { namesrvAddr, httpclient: {} } : { nameSrv: namesrvAddr.split(';'), httpclient: {} };
const say = (...fields) => process.stdout.write(`${fields.join('\t')}\n`);
const ended = made => (isOld ? require('co')(made) : made); // rocketmq's methods are generators

function message(topic, key, tag, body, more = {}) {
  const made = new Message(`${prefix}-${topic}`, tag, body);
  made.keys = [key];
  Object.assign(made.properties, more);
  return made;
}

async function one(kind, sent) {
  const { keys } = sent;
  try {
    const result = await ended(producer.send(sent));
    const { brokerName, queueId } = result.messageQueue;
    const ids = [result.msgId, result.offsetMsgId || result.msgId];
    say('SEND', kind, keys, result.sendStatus, ...ids, brokerName, queueId, result.queueOffset);
  } catch (error) {
    say('FAILED', keys, error);
  }
}

function received(group, { keys, tags, reconsumeTimes, body, topic, queueId, queueOffset, msgId, properties }) {
  const names = Object.keys(properties).sort();
  const about = [msgId, properties.greeting, names];
  say('RECEIVE', group, keys, tags, reconsumeTimes, body.length, crc32(body), topic, queueId, queueOffset, ...about);
}

async function concurrent(group, tags) {
  const consumeFromWhere = 'CONSUME_FROM_FIRST_OFFSET';
  const consumer = new Consumer({ ...options, consumerGroup: `${prefix}-${group}`, consumeFromWhere });
  const receive = got => {
    received(group, got);
    if (got.keys === 'failing-0' && !failed.has(group)) {
      failed.add(group);
      throw new Error('once more');
    }
  };
  consumer.on('error', error => process.stderr.write(`${error.stack}\n`));
  consumer.subscribe(`${prefix}-topic`, tags, isOld ? function* (got) { receive(got); } : async got => receive(got));
  await consumer.ready();
  return consumer;
}

const commands = {
  async send() {
    producer = new Producer({ ...options, producerGroup: `${prefix}-producers` });
    producer.on('error', error => process.stderr.write(`${error.stack}\n`));
    await producer.ready();
    for (const [kind, times, tag] of [['sync', 8], ['async', 4, 'TagA'], ['oneway', 4, 'TagB'], ['batch', 3, 'TagC']]) {
      for (let i = 0; i < times; i++) {
        await one(kind, message('topic', `${kind}-${i}`, tag || ['TagA', 'TagB'][i % 2], `body ${i}`));
      }
    }
    await one('big', message('topic', 'big-0', 'TagA', 'x'.repeat(10000)));
    const unicode = { greeting: 'gr\u00fc\u00dfe' };
    await one('unicode', message('topic', 'unicode-0', 'TagA', 'gr\u00fc\u00dfe \u6d88\u606f', unicode));
    await one('delayed', message('topic', 'delayed-0', 'TagB', 'later', { DELAY: '1' }));
    await one('failing', message('topic', 'failing-0', 'TagB', 'comes twice'));
    await one('last', message('topic', 'last-0', 'TagA', 'looked up'));
  },
  async consume() {
    all = await concurrent('all', '*');
    await concurrent('tagged', 'TagA || TagC');
  },
  async restart() {
    await ended(all.close());
    await one('again', message('topic', 'again-0', 'TagA', 'after the restart'));
    await concurrent('all', '*');
  },
};

(async () => {
  say('READY');
  if (isOld) say('DONE', 'retry', 'lacks'); // it calls the listener once more itself
  for await (const line of createInterface({ input: process.stdin })) {
    if (line in commands) await commands[line]();
    say('DONE', line, ...line in commands ? [] : ['lacks']);
  }
  process.exit(0);
})().catch(error => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
