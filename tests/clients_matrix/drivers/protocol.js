// What each Node driver says and does (docs/conform-protocol.md): JSON lines, a send each 200 ms, an end at SIGTERM or at
// the end of stdin.
'use strict';
const { NEMESRV_TOPIC: topic, NEMESRV_GROUP: group, NEMESRV_ROLE: role = 'producer' } = process.env;
const clients = [];
let ending = false;

const say = event => process.stdout.write(`${JSON.stringify(event)}\n`);
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
const log = error => process.stderr.write(`${error.stack}\n`);

// made() is a client; ready(client) and close(client) wait until it is so.
async function started(made, ready) {
  const client = made();
  clients.push(client);
  await ready(client);
  return client;
}

// send(producer, id) returns what is known of the message besides; leave() ends the process.
async function drive({ consumer, producer, send, ready, close, leave = () => process.exit(0) }) {
  const stop = async () => {
    if (ending) return;
    ending = true;
    setTimeout(leave, 1500); // what hangs is left behind
    await Promise.allSettled(clients.map(close));
    leave();
  };
  process.on('SIGTERM', stop);
  process.stdin.on('end', stop).resume();
  if (role !== 'producer') await started(consumer, ready);
  const sends = role === 'consumer' ? null : await started(producer, ready);
  say({ f: 'started' });
  for (let n = 0; sends && !ending; n++) {
    const id = `${process.pid}-${n}`;
    say({ f: 'send', id });
    try {
      say({ f: 'sent', id, type: 'ok', ...await send(sends, id) });
    } catch (error) {
      say({ f: 'sent', id, type: 'fail', error: String(error) });
    }
    await pause(200);
  }
}

const main = how => drive(how).catch(error => {
  log(error);
  process.exit(1);
});

module.exports = { group, log, main, say, topic };
