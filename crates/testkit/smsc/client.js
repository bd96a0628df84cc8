// An SMPP client for tests, based on the package smpp: an independent implementation of the protocol, which shares no
// mistakes with ours.
//
//   node client.js --url smpp://HOST:PORT --system-id NAME --password WORD [--bind transceiver]
//
// It binds and then reads requests from standard input, a line of JSON for each: {"command", "fields"}. It prints a line
// of JSON for each answer and for each request of the server, and answers `deliver_sm` and `enquire_link`. It ends when
// its input ends or the connection closes.
'use strict';

const readline = require('readline');
const { parseArgs } = require('util');

const smpp = requireSmpp();

const options = parseArgs({
  options: {
    url: { type: 'string' },
    'system-id': { type: 'string' },
    password: { type: 'string' },
    bind: { type: 'string', default: 'transceiver' },
  },
}).values;

function requireSmpp() {
  try {
    return require('smpp');
  } catch (error) {
    if (error.code !== 'MODULE_NOT_FOUND') throw error;
    console.error('The package smpp is not installed. Run: scripts/node-packages');
    process.exit(1);
  }
}

function print(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

function shown(pdu) {
  const { command, command_status: status, sequence_number: sequence } = pdu;
  const text = (value) => (value && value.message !== undefined ? value.message : value);
  return {
    event: command,
    status,
    sequence,
    messageId: pdu.message_id,
    from: pdu.source_addr,
    to: pdu.destination_addr,
    esmClass: pdu.esm_class,
    text: text(pdu.short_message) || text(pdu.message_payload),
    receiptedId: pdu.receipted_message_id,
    messageState: pdu.message_state,
  };
}

const session = smpp.connect({ url: options.url }, () => {
  const credentials = { system_id: options['system-id'], password: options.password };
  session[`bind_${options.bind}`](credentials, (answer) => {
    print(shown(answer));
    if (answer.command_status !== 0) return session.close();
    const lines = readline.createInterface({ input: process.stdin });
    lines.on('line', (line) => {
      const { command, fields } = JSON.parse(line);
      session.send(new smpp.PDU(command, fields), (resp) => print(shown(resp)));
    });
    lines.on('close', () => session.unbind(() => session.close()));
  });
});
session.on('deliver_sm', (pdu) => {
  print(shown(pdu));
  session.send(pdu.response());
});
session.on('enquire_link', (pdu) => session.send(pdu.response()));
session.on('unbind', (pdu) => {
  print(shown(pdu));
  session.send(pdu.response());
  session.close();
});
session.on('error', (error) => print({ event: 'error', text: String(error) }));
session.on('close', () => {
  print({ event: 'close' });
  process.exit(0);
});
