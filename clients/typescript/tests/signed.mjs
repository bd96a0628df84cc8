// Callbacks for the tests, signed as the service signs them.

import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";

export const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const samples = JSON.parse(readFileSync(new URL("../callbacks.json", import.meta.url), "utf8"));
/** A kind of callback, and one of that kind. */
export const CALLBACKS = Object.entries(samples);

export function signed(body, { timestamp = String(Math.floor(Date.now() / 1000)), secret = SECRET } = {}) {
  const id = "msg_1";
  const key = Buffer.from(secret.slice("whsec_".length), "base64");
  const signature = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}

/** Posts a body with `fetch`, or another function that takes a URL and options. */
export async function post(url, body, headers, send = fetch) {
  const response = await send(url, { method: "POST", body, headers });
  return [response.status, await response.text()];
}
