// An SMSC for tests, based on the package smpp: an independent implementation of the protocol, which shares no mistakes
// with ours.
//
//   node smsc.js --log FILE [--port 0] [--password WORD] [--ids decimal|hex] [--receipt-ids decimal|hex]
//                [--receipts text|tlv|both|none] [--receipt-after MS] [--answer-after MS] [--texts FILE]
//
// It prints its address and logs a line of JSON for each bind, message, accepted receipt, answered text, unbind and closed
// connection. A message is logged before it is answered. If it is killed and restarted with the same log, it continues
// where it was: IDs continue, and receipts and texts that were not accepted are sent.
//
// It delivers the texts that are added to the file of texts, a line of JSON for each: {"link", "from", "to", "udh",
// "message"}. "link" counts the sessions in the order in which they were bound. The package encodes the message.
'use strict';

const fs = require('fs');
const { parseArgs } = require('util');

const octets = recordOctets();
const smpp = requireSmpp();

const FIRST_ID = 0xa0000;
// The maximum number of receipts without an answer on a session.
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
    texts: { type: 'string' },
  },
}).values;
const receiptAfterMs = Number(options['receipt-after']);
const answerAfterMs = Number(options['answer-after']);

const log = fs.openSync(options.log, 'a');
// Recipients of the messages whose receipt was not accepted yet, by ID.
const pending = new Map();
// IDs of those whose receipt is due and not in flight.
let due = [];
let nextId = FIRST_ID;
// Texts that were not delivered yet, with their line in the file.
let waitingTexts = [];
let textsRead = 0;
const acceptedTexts = new Set();
const bound = new Set();

function requireSmpp() {
  try {
    const smpp = require('smpp');
    octets.install(smpp);
    return smpp;
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    console.error('The package smpp is not installed. Run: scripts/node-packages');
    process.exit(1);
  }
}

// The package returns decoded texts and times; the tests need the octets, too.
function recordOctets() {
  const seen = new WeakMap();
  const keep = (pdu, value) => {
    if (!seen.has(pdu)) seen.set(pdu, []);
    seen.get(pdu).push(value);
  };
  return {
    install(smpp) {
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

// Restores the state from the log of earlier runs.
function restore() {
  for (const line of fs.readFileSync(options.log, 'utf8').split('\n')) {
    let entry;
    try {
      entry = JSON.parse(line);
    } catch {
      continue; // An empty line, or the last line of a run that was killed.
    }
    if (entry.event === 'submit') {
      nextId = Math.max(nextId, entry.id + 1);
      if (entry.registered_delivery & 1) pending.set(entry.id, entry.to);
    } else if (entry.event === 'receipt') {
      pending.delete(entry.id);
    } else if (entry.event === 'text' && entry.status === smpp.ESME_ROK) {
      acceptedTexts.add(entry.line);
    }
  }
  if (options.receipts === 'none') pending.clear();
  due = [...pending.keys()];
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
  session.acceptsReceipts = pdu.command !== 'bind_transmitter';
  bound.add(session);
  sendReceipts();
  sendTexts();
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
    pending.set(id, pdu.destination_addr);
    setTimeout(() => {
      due.push(id);
      sendReceipts();
    }, answerAfterMs + receiptAfterMs);
  }
}

// Sends the due receipts on the sessions that accept some.
function sendReceipts() {
  for (const session of bound) {
    while (session.acceptsReceipts && session.inFlight.size < RECEIPT_WINDOW && due.length > 0) {
      sendReceipt(session, due.shift());
    }
  }
}

function sendReceipt(session, id) {
  const name = written(id, options['receipt-ids']);
  const now = new Date().toISOString().replace(/[-T:]/g, '').slice(2, 12);
  const text = `id:${name} sub:001 dlvrd:001 submit date:${now} done date:${now} stat:DELIVRD err:000 text:`;
  const tlvs = options.receipts === 'tlv' || options.receipts === 'both';
  session.inFlight.add(id);
  session.deliver_sm(
    {
      source_addr_ton: 1,
      source_addr_npi: 1,
      source_addr: pending.get(id),
      esm_class: 4,
      short_message: options.receipts === 'tlv' ? Buffer.alloc(0) : Buffer.from(text, 'latin1'),
      ...(tlvs ? { receipted_message_id: name, message_state: DELIVERED } : {}),
    },
    (answer) => {
      session.inFlight.delete(id);
      if (answer.command_status === smpp.ESME_ROK) {
        pending.delete(id);
        write({ event: 'receipt', id });
      } else {
        due.push(id);
      }
      sendReceipts();
    },
  );
}

// Reads the texts that were added to the file.
function readTexts() {
  const lines = fs.readFileSync(options.texts, 'utf8').split('\n').slice(0, -1);
  for (; textsRead < lines.length; textsRead++) {
    if (!acceptedTexts.has(textsRead)) waitingTexts.push({ line: textsRead, ...JSON.parse(lines[textsRead]) });
  }
  sendTexts();
}

// Sends the texts whose link is bound.
function sendTexts() {
  const links = [...bound].filter((session) => session.acceptsReceipts);
  const texts = waitingTexts;
  waitingTexts = texts.filter((text) => !links[text.link]);
  for (const text of texts) {
    if (links[text.link]) sendText(links[text.link], text);
  }
}

function sendText(session, text) {
  session.texts.set(text.line, text);
  session.deliver_sm(
    {
      source_addr_ton: 1,
      source_addr_npi: 1,
      source_addr: text.from,
      destination_addr: text.to,
      short_message: { udh: Buffer.from(text.udh, 'hex'), message: text.message },
    },
    (answer) => {
      session.texts.delete(text.line);
      write({ event: 'text', line: text.line, session: session.number, status: answer.command_status });
      if (answer.command_status !== smpp.ESME_ROK) {
        waitingTexts.push(text);
        sendTexts();
      }
    },
  );
}

let sessions = 0;

function serve(session) {
  session.number = sessions++;
  session.inFlight = new Set();
  session.texts = new Map();
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
    // Without an answer, they are sent again on the next session.
    due.push(...session.inFlight);
    session.inFlight.clear();
    waitingTexts.push(...session.texts.values());
    session.texts.clear();
    sendReceipts();
    sendTexts();
  });
}

restore();
if (options.texts !== undefined) {
  readTexts();
  fs.watch(options.texts, readTexts);
}
const server = smpp.createServer(serve);
server.listen(Number(options.port), '127.0.0.1', () => {
  console.log(`listening on smpp://127.0.0.1:${server.address().port}`);
});
