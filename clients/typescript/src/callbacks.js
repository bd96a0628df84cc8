import { createHmac, timingSafeEqual } from "node:crypto";

const TOLERANCE_S = 300;
const MAX_BODY_BYTES = 1024 * 1024;

/** A callback that the account's secret did not sign, or that is too old. */
export class SignatureError extends Error {
  constructor(message) {
    super(message);
    this.name = "SignatureError";
  }
}

/** Throws a `SignatureError` unless the callback is signed with the secret. `body` is what came, byte for byte. */
export function verifySignature(secret, headers, body, { toleranceS = TOLERANCE_S, now = Date.now() } = {}) {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!/^[0-9]{1,12}$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > toleranceS) {
    throw new SignatureError("The callback is too old, or its time is wrong.");
  }
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const expected = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  // While a secret is replaced, there are two.
  const isSigned = signatures.split(" ").some((signature) => {
    const [version, text] = signature.split(",");
    const given = Buffer.from(text ?? "", "base64");
    return version === "v1" && given.length === expected.length && timingSafeEqual(given, expected);
  });
  if (!isSigned) {
    throw new SignatureError("No signature of the callback fits the secret.");
  }
}

/** Verifies a callback and tells what it is. */
export function readCallback(secret, headers, body, options) {
  verifySignature(secret, headers, body, options);
  const data = JSON.parse(Buffer.from(body).toString("utf8"));
  return { kind: kindOf(data), id: header(headers, "webhook-id"), data };
}

function kindOf(data) {
  if ("previousStatus" in data) {
    return "sender";
  }
  if ("received" in data) {
    return "inbound";
  }
  return "status" in data ? "report" : "lookup";
}

/** A handler for `node:http`, Express and what takes `(request, response)`. Mount it before parsers of bodies. */
export function nodeHandler(secret, receive) {
  return async (request, response) => {
    const answer = await answerTo(secret, request.headers, () => readStream(request), receive);
    response.statusCode = answer.status;
    response.setHeader("Content-Type", "text/plain");
    response.end(answer.text);
  };
}

/** A handler for what takes a `Request` and returns a `Response`: Hono, Next.js, Deno, Bun and others. */
export function fetchHandler(secret, receive) {
  return async (request) => {
    const answer = await answerTo(secret, request.headers, () => readStream(request.body ?? []), receive);
    return new Response(answer.text, { status: answer.status, headers: { "Content-Type": "text/plain" } });
  };
}

/** If `receive` fails, the answer is 500 and the callback comes again. */
async function answerTo(secret, headers, read, receive) {
  try {
    const body = await read();
    if (body === null) {
      return { status: 413, text: "The body is too large." };
    }
    await receive(readCallback(secret, headers, body));
    return { status: 200, text: "OK" };
  } catch (error) {
    if (error instanceof SignatureError) {
      return { status: 401, text: error.message };
    }
    console.error("A callback could not be handled; it will come again:", error);
    return { status: 500, text: "The callback could not be handled." };
  }
}

async function readStream(stream) {
  const chunks = [];
  let length = 0;
  for await (const chunk of stream) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) {
      return null;
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function header(headers, name) {
  const value = typeof headers.get === "function" ? headers.get(name) : headers[name];
  if (typeof value !== "string" || value === "") {
    throw new SignatureError(`The header ${name} is missing.`);
  }
  return value;
}
