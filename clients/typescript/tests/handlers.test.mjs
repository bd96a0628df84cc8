// The verification of signatures, and the handlers on a real server.

import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { SignatureError, fetchHandler, nodeHandler, readCallback, verifySignature } from "switchboard-client";
import { CALLBACKS, SECRET, post, signed } from "./signed.mjs";

const BODY = JSON.stringify(CALLBACKS[0][1]);
const TOO_LARGE = Buffer.alloc(4 * 1024 * 1024, "x");
const URL_OF_CALLBACKS = "http://127.0.0.1/callbacks";

async function withServer(receive, run) {
  const server = http.createServer(nodeHandler(SECRET, receive));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await run(`http://127.0.0.1:${server.address().port}/callbacks`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Both handlers take the same callbacks. */
async function withHandlers(receive, run) {
  await withServer(receive, (url) => run((body, headers) => post(url, body, headers)));
  const handler = fetchHandler(SECRET, receive);
  const send = (url, options) => handler(new Request(url, options));
  await run((body, headers) => post(URL_OF_CALLBACKS, body, headers, send));
}

test("invalid signatures are refused", () => {
  const now = Math.floor(Date.now() / 1000);
  const of = (timestamp) => signed(BODY, { timestamp: String(timestamp) });
  const cases = {
    "too old": of(now - 400),
    "in the future": of(now + 400),
    "too many digits": of("9".repeat(5000)),
    "no number": of("soon"),
    "negative": of(-now),
    "another secret": signed(BODY, { secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD" }),
    "another body": signed("{}"),
    "no header": {},
  };
  for (const [name, headers] of Object.entries(cases)) {
    assert.throws(() => verifySignature(SECRET, headers, BODY), SignatureError, name);
  }
  verifySignature(SECRET, signed(BODY), BODY);
});

test("every kind of callback is recognised", () => {
  for (const [kind, data] of CALLBACKS) {
    const body = Buffer.from(JSON.stringify(data));
    assert.deepEqual(readCallback(SECRET, signed(body), body), { kind, id: "msg_1", data });
  }
});

test("valid callbacks are received", async () => {
  const received = [];
  await withHandlers(
    async (callback) => void received.push(callback),
    async (send) => {
      received.length = 0;
      for (const [, data] of CALLBACKS) {
        const body = JSON.stringify(data);
        assert.deepEqual(await send(body, signed(body)), [200, "OK"]);
      }
      assert.deepEqual(
        received.map(({ kind, data }) => [kind, data]),
        CALLBACKS,
      );
    },
  );
});

test("forged callbacks get 401", async () => {
  await withHandlers(assert.fail, async (send) => {
    for (const headers of [{}, signed("{}"), signed(BODY, { timestamp: "9".repeat(5000) })]) {
      assert.equal((await send(BODY, headers))[0], 401);
    }
  });
});

test("a body that is too large gets 413", async () => {
  await withHandlers(assert.fail, async (send) => {
    assert.deepEqual(await send(TOO_LARGE, signed(TOO_LARGE)), [413, "The body is too large."]);
  });
});

test("a failure gets 500, and the callback comes again", async (t) => {
  const logged = t.mock.method(console, "error", () => {});
  const fail = () => {
    throw new Error("The database is down.");
  };
  await withHandlers(fail, async (send) => {
    assert.equal((await send(BODY, signed(BODY)))[0], 500);
  });
  assert.equal(logged.mock.callCount(), 2);
});
