// The handlers of README.md, as they are written there.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import { test } from "node:test";
import { CALLBACKS, SECRET, post, signed } from "./signed.mjs";

process.env.CALLBACK_SECRET = SECRET;
const page = readFileSync(new URL("../README.md", import.meta.url), "utf8");
const blocks = [...page.matchAll(/```js\n(.*?)```/gs)].map(([, code]) => code);
const written = (word) => blocks.filter((code) => code.includes(word));

async function load(code, name) {
  const file = new URL(`readme-${name}.mjs`, import.meta.url);
  writeFileSync(file, code);
  return import(file);
}

/** Sends every kind of callback, and returns what the code printed for them. */
async function printed(t, url, send) {
  const log = t.mock.method(console, "log", () => {});
  for (const [, data] of CALLBACKS) {
    const body = JSON.stringify(data);
    assert.deepEqual(await post(url, body, signed(body), send), [200, "OK"]);
  }
  assert.equal((await post(url, "{}", {}, send))[0], 401);
  const lines = log.mock.calls.map(({ arguments: values }) => values);
  log.mock.restore();
  return lines;
}

const kindsAndIds = CALLBACKS.map(([kind, data]) => [kind, data.id]);
const [[, report], [, inbound]] = CALLBACKS;
const servers = [
  ["http", "createServer", [[report.id, report.status], [inbound.from, inbound.message]]],
  ["express", "express()", kindsAndIds],
];

for (const [name, word, expected] of servers) {
  test(`the handler for ${name} receives callbacks`, async (t) => {
    const { listen } = net.Server.prototype;
    let server;
    const listening = new Promise((resolve) => {
      t.mock.method(net.Server.prototype, "listen", function () {
        server = this;
        return listen.call(this, 0, "127.0.0.1", resolve);
      });
    });
    const [code] = written(word);
    await load(code, name);
    await listening;
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${server.address().port}/callbacks`;
    assert.deepEqual(await printed(t, url, fetch), expected);
  });
}

test("the handler for Hono receives callbacks", async (t) => {
  const [code] = written("new Hono()");
  const { default: app } = await load(code, "hono");
  const send = (url, options) => app.request(url, options);
  assert.deepEqual(await printed(t, "http://127.0.0.1/callbacks", send), kindsAndIds);
});
