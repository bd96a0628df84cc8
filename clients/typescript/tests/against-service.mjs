// Uses the client as a program would, and writes what it saw.
//
// Prints the port of its receiver, reads {"url", "token", "secret", "callbackUrl", "to", "from"} from standard input, and
// writes one JSON object.

import http from "node:http";
import readline from "node:readline";
import { ApiError, Switchboard, fetchHandler, nodeHandler } from "switchboard-client";

async function serve(handler) {
  const server = http.createServer(handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server.address().port;
}

async function collect(list) {
  const all = [];
  for await (const one of list) {
    all.push(one);
  }
  return all;
}

async function refusal(call) {
  try {
    await call();
  } catch (error) {
    if (error instanceof ApiError) {
      return { status: error.status, errorCode: error.errorCode };
    }
    throw error;
  }
  return null;
}

/** The idempotency keys of the attempts, for each path. */
const attempts = {};
/** Drops the first attempt of each request, refuses the second, and accepts the third. */
function failing(request, response) {
  const [path] = request.url.split("?");
  const keys = (attempts[path] ??= []);
  keys.push(request.headers["idempotency-key"] ?? null);
  if (keys.length === 1) {
    request.socket.destroy();
    return;
  }
  const isRefused = keys.length === 2;
  response.writeHead(isRefused ? 503 : 200, { "Retry-After": "0", "X-Service-Amount-Sent": "1" });
  response.end(isRefused ? "{}" : '["1"]');
}

const seen = {};
let task;
let received;
const all = new Promise((resolve) => {
  received = ({ kind, data }) => {
    seen[kind] = data;
    if (seen.report && seen.inbound && seen.lookup) {
      resolve();
    }
  };
});
console.log(await serve((request, response) => nodeHandler(task.secret, received)(request, response)));
const [line] = await collect(readline.createInterface({ input: process.stdin }));
task = JSON.parse(line);
const switchboard = new Switchboard({ baseUrl: task.url, token: task.token });

const message = { to: task.to, from: task.from, message: "Grüße" };
seen.check = await switchboard.checkSms(message);
message.dlrUrl = task.callbackUrl;
for (const name of ["sent", "repeated"]) {
  seen[name] = await switchboard.sendSms(message, { idempotencyKey: "order-17" });
}
seen.lookupId = await switchboard.lookUp({ msisdn: task.to, callBackUrl: task.callbackUrl });
await all;
seen.status = await switchboard.readMessageStatus(seen.sent.ids[0]);
const inbox = await collect(switchboard.listInbox({ from: task.to, limit: 1 }));
seen.inbox = inbox.map(({ id }) => id);

const headers = { "webhook-id": "msg_1", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA" };
const forged = await fetch(task.callbackUrl, { method: "POST", body: "{}" });
const request = new Request(task.callbackUrl, { method: "POST", body: "{}", headers });
const old = await fetchHandler(task.secret, received)(request);
seen.forged = [forged.status, old.status];
seen.refused = await refusal(() => switchboard.sendSms({ to: "12", from: "Acme", message: "Hi" }));
for (const to of ["+37120000001", "+37120000002"]) {
  await switchboard.sendSms({ to, from: "Acme", message: "Hi", testMode: "1" });
}
const listed = await collect(switchboard.listMessages({ channel: "sms", limit: 2 }));
seen.listed = listed.map(({ id }) => id);
seen.networks = (await collect(switchboard.listNetworks("US"))).length;

const port = await serve(failing);
const retrying = new Switchboard({ baseUrl: `http://127.0.0.1:${port}`, token: "token" });
await retrying.sendSms({ to: "+37120000001", from: "Acme", message: "Hi" });
await retrying.sendViber({ to: "+37120000001", from: "Acme", message: "Hi" });
await retrying.sendCode({ to: "+37120000001" });
await retrying.lookUp({ msisdn: "+37120000001" });
// A wrong code would count as a second try.
await retrying.checkCode(1, "1234").catch(() => {});
seen.attempts = attempts;
console.log(JSON.stringify(seen));
process.exit(0);
