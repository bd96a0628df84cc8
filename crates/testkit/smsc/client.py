"""An SMPP client for tests, on smpplib: sends texts and waits for their receipts.

    client.py HOST PORT SYSTEM_ID PASSWORD TO TEXT…

For each text it prints a line with its message ID and the text of its receipt, as JSON.
"""

import json
import sys

import smpplib.client
import smpplib.consts
import smpplib.gsm

host, port, system_id, password, to, *texts = sys.argv[1:]
ids = []
receipts = {}


def received(pdu):
    receipts[pdu.receipted_message_id.decode()] = pdu.short_message.decode()


client = smpplib.client.Client(host, int(port), timeout=60)
client.set_message_sent_handler(lambda pdu: ids.append(pdu.message_id.decode()))
client.set_message_received_handler(received)
client.connect()
client.bind_transceiver(system_id=system_id, password=password)
expected = 0
for text in texts:
    # The client splits long texts itself.
    parts, coding, esm_class = smpplib.gsm.make_parts(text)
    for part in parts:
        client.send_message(
            source_addr_ton=smpplib.consts.SMPP_TON_ALNUM,
            source_addr="Acme",
            dest_addr_ton=smpplib.consts.SMPP_TON_INTL,
            dest_addr_npi=smpplib.consts.SMPP_NPI_ISDN,
            destination_addr=to,
            short_message=part,
            data_coding=coding,
            esm_class=esm_class,
            registered_delivery=True,
        )
        expected += 1
while len(receipts) < expected or len(ids) < expected:
    client.read_once()
for message in ids:
    print(json.dumps({"id": message, "receipt": receipts[message]}), flush=True)
client.unbind()
client.disconnect()
