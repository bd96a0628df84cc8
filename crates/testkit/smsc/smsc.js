// An SMSC for tests, on the package smpp: another implementation of the protocol, which has no mistake in common with ours.
//
//   node smsc.js --log FILE [--port 0] [--password WORD] [--ids decimal|hex] [--receipt-ids decimal|hex]
//                [--receipts text|tlv|both|none] [--receipt-after MS] [--answer-after MS]
//
// It prints where it listens and writes a line of JSON for each bind, message, receipt that was answered, unbind and closed
// connection to the log, a message before it is answered. Killed and started again on the same log it goes on as if it
// had kept everything on a disk: IDs go on, and receipts that nobody had answered are sent.
'use strict';

const fs = require('fs');
const { parseArgs } = require('util');

const octets = keepOctets();
const smpp = requireSmpp();

const FIRST_ID = 0xa0000;
// Receipts that may be without an answer on a session.
const RECEIPT_WINDOW = 100;
const DELIVERED = 2;

const options = parseArgs({
  options: {
    log: { type: 'string' },
    port: { type: 'string', default: '0' },
    password: { type: 'string' },
    ids: { type: 'string', default: 'decimal' },
    'receipt-ids': { type: 'string', default: 'decimal' },
    receipts: { type: 'string', default: 'text' },
    'receipt-after': { type: 'string', default: '20' },
    'answer-after': { type: 'string', default: '0' },
  },
}).values;
const receiptAfterMs = Number(options['receipt-after']);
const answerAfterMs = Number(options['answer-after']);

const log = fs.openSync(options.log, 'a');
// Messages whose receipt nobody has answered, by their number.
const owed = new Map();
// Those of them whose receipt is due and not under way.
let due = [];
let nextId = FIRST_ID;
const bound = new Set();

function requireSmpp() {
  try {
    const smpp = require('smpp');
    octets.watch(smpp);
    return smpp;
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    console.error('The package smpp is not installed. Run: scripts/node-packages');
    process.exit(1);
  }
}

// The package hands out texts and times as it reads them; the tests want the octets, too.
function keepOctets() {
  const seen = new WeakMap();
  const keep = (pdu, value) => {
    if (!seen.has(pdu)) seen.set(pdu, []);
    seen.get(pdu).push(value);
  };
  return {
    watch(smpp) {
      for (const filter of [smpp.filters.message, smpp.filters.time]) {
        const decode = filter.decode;
        filter.decode = function (value, ...more) {
          const read = decode.call(this, value, ...more);
          keep(this, { value, read });
          return read;
        };
      }
    },
    of(pdu, read) {
      const found = (seen.get(pdu) || []).find((one) => one.read === read);
      return found ? found.value : read;
    },
  };
}

function write(entry) {
  fs.writeSync(log, JSON.stringify(entry) + '\n');
}

function hex(value) {
  return Buffer.isBuffer(value) ? value.toString('hex') : undefined;
}

function written(id, form) {
  return form === 'hex' ? id.toString(16).toUpperCase() : String(id);
}

// What an earlier life on the same log left to do.
function remember() {
  for (const line of fs.readFileSync(options.log, 'utf8').split('\n')) {
    let entry;
    try {
      entry = JSON.parse(line);
    } catch {
      continue; // The last line of a life that was cut short, or nothing.
    }
    if (entry.event === 'submit') {
      nextId = Math.max(nextId, entry.id + 1);
      if (entry.registered_delivery & 1) owed.set(entry.id, entry.to);
    } else if (entry.event === 'receipt') {
      owed.delete(entry.id);
    }
  }
  if (options.receipts === 'none') owed.clear();
  due = [...owed.keys()];
}

function bind(session, pdu) {
  const refused = options.password !== undefined && options.password !== pdu.password;
  const status = refused ? smpp.ESME_RINVPASWD : smpp.ESME_ROK;
  write({ event: 'bind', session: session.number, command: pdu.command, system_id: pdu.system_id, status });
  session.send(pdu.response({ command_status: status, system_id: 'smsc' }));
  if (refused) {
    session.close();
    return;
  }
  session.takesReceipts = pdu.command !== 'bind_transmitter';
  bound.add(session);
  sendReceipts();
}

function submit(session, pdu) {
  const id = nextId++;
  const message = pdu.short_message;
  write({
    event: 'submit',
    id,
    answered: written(id, options.ids),
    session: session.number,
    sequence: pdu.sequence_number,
    service_type: pdu.service_type,
    from_ton: pdu.source_addr_ton,
    from_npi: pdu.source_addr_npi,
    from: pdu.source_addr,
    to_ton: pdu.dest_addr_ton,
    to_npi: pdu.dest_addr_npi,
    to: pdu.destination_addr,
    esm_class: pdu.esm_class,
    data_coding: pdu.data_coding,
    registered_delivery: pdu.registered_delivery,
    validity_period: octets.of(pdu, pdu.validity_period),
    short_message: hex(octets.of(pdu, message)),
    text: message && message.message,
    message_payload: hex(octets.of(pdu, pdu.message_payload)),
    payload_text: pdu.message_payload && pdu.message_payload.message,
    sar_msg_ref_num: pdu.sar_msg_ref_num,
    sar_total_segments: pdu.sar_total_segments,
    sar_segment_seqnum: pdu.sar_segment_seqnum,
  });
  const answer = () => session.send(pdu.response({ message_id: written(id, options.ids) }));
  if (answerAfterMs > 0) setTimeout(answer, answerAfterMs);
  else answer();
  if (pdu.registered_delivery & 1 && options.receipts !== 'none') {
    owed.set(id, pdu.destination_addr);
    setTimeout(() => {
      due.push(id);
      sendReceipts();
    }, answerAfterMs + receiptAfterMs);
  }
}

// Sends what is due, as far as there are sessions that take it.
function sendReceipts() {
  for (const session of bound) {
    while (session.takesReceipts && session.underWay.size < RECEIPT_WINDOW && due.length > 0) {
      sendReceipt(session, due.shift());
    }
  }
}

function sendReceipt(session, id) {
  const name = written(id, options['receipt-ids']);
  const now = new Date().toISOString().replace(/[-T:]/g, '').slice(2, 12);
  const text = `id:${name} sub:001 dlvrd:001 submit date:${now} done date:${now} stat:DELIVRD err:000 text:`;
  const tlvs = options.receipts === 'tlv' || options.receipts === 'both';
  session.underWay.add(id);
  session.deliver_sm(
    {
      source_addr_ton: 1,
      source_addr_npi: 1,
      source_addr: owed.get(id),
      esm_class: 4,
      short_message: options.receipts === 'tlv' ? Buffer.alloc(0) : Buffer.from(text, 'latin1'),
      ...(tlvs ? { receipted_message_id: name, message_state: DELIVERED } : {}),
    },
    (answer) => {
      session.underWay.delete(id);
      if (answer.command_status === smpp.ESME_ROK) {
        owed.delete(id);
        write({ event: 'receipt', id });
      } else {
        due.push(id);
      }
      sendReceipts();
    },
  );
}

let sessions = 0;

function serve(session) {
  session.number = sessions++;
  session.underWay = new Set();
  for (const command of ['bind_transceiver', 'bind_transmitter', 'bind_receiver']) {
    session.on(command, (pdu) => bind(session, pdu));
  }
  session.on('submit_sm', (pdu) => {
    if (bound.has(session)) submit(session, pdu);
    else session.send(pdu.response({ command_status: smpp.ESME_RINVBNDSTS }));
  });
  session.on('enquire_link', (pdu) => session.send(pdu.response()));
  session.on('unbind', (pdu) => {
    write({ event: 'unbind', session: session.number });
    bound.delete(session);
    session.send(pdu.response());
    session.close();
  });
  session.on('unknown', (pdu) => session.send(pdu.response()));
  session.on('error', () => session.destroy());
  session.on('close', () => {
    write({ event: 'close', session: session.number });
    bound.delete(session);
    // Not answered: the next session gets them.
    due.push(...session.underWay);
    session.underWay.clear();
    sendReceipts();
  });
}

remember();
const server = smpp.createServer(serve);
server.listen(Number(options.port), '127.0.0.1', () => {
  console.log(`listening on smpp://127.0.0.1:${server.address().port}`);
});
