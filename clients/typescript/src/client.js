import { randomUUID } from "node:crypto";

const MAX_WAIT_MS = 60_000;
const FIRST_WAIT_MS = 500;
const RETRIED = new Set([429, 500, 502, 503, 504]);

/** An answer of the service with a status other than 200. */
export class ApiError extends Error {
  constructor(response, message) {
    super(message);
    this.name = "ApiError";
    this.status = response.status;
    this.errorCode = readNumber(response.headers.get("x-error-code"));
    this.retryAfterS = readNumber(response.headers.get("retry-after"));
    this.requiredPermission = response.headers.get("x-required-permission");
    this.requestId = response.headers.get("x-request-id");
  }
}

/** The REST API of a Switchboard. */
export class Switchboard {
  #baseUrl;
  #token;
  #headerPrefix;
  #retries;
  #timeoutMs;
  #fetch;

  constructor({
    baseUrl,
    token,
    headerPrefix = "X-Service",
    retries = 4,
    timeoutMs = 30_000,
    fetch = globalThis.fetch,
  }) {
    if (!baseUrl || !token) {
      throw new TypeError("Give baseUrl and token.");
    }
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#token = token;
    this.#headerPrefix = headerPrefix;
    this.#retries = retries;
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch;
  }

  async sendSms(message, options) {
    return this.#send("/sms", message, options);
  }

  async sendViber(message, options) {
    return this.#send("/viber", message, options);
  }

  async #send(path, message, options) {
    const { response, body } = await this.#post(path, message, { key: keyOf(options) });
    return { ids: body, parts: readNumber(response.headers.get(`${this.#headerPrefix}-Amount-Sent`)) };
  }

  async estimateSms(message) {
    return (await this.#post("/sms/cost", message, { safe: true })).body;
  }

  async checkSms(message) {
    return (await this.#post("/sms/check", message, { safe: true })).body;
  }

  async readMessageStatus(id) {
    return this.#get(`/sms/status/${encode(id)}`);
  }

  async cancelMessage(id) {
    return (await this.#request("DELETE", `/sms/${encode(id)}`, {})).body;
  }

  listScheduledSms(query) {
    return this.#byOffset("/sms", { scheduled: "", ...query });
  }

  listMessages(query) {
    return this.#byCursor("/messages", query);
  }

  listInbox(query) {
    return this.#byCursor("/sms/inbox", query);
  }

  async readInboxMessage(id) {
    return this.#get(`/sms/inbox/${encode(id)}`);
  }

  listOptOuts(query) {
    return this.#byCursor("/optOuts", query);
  }

  async addOptOut(number, sender) {
    return (await this.#post("/optOuts", { number, sender }, { safe: true })).body;
  }

  async removeOptOut(number, sender) {
    return (await this.#request("DELETE", `/optOuts/${encode(number)}`, { query: { sender } })).body;
  }

  async sendCode(request, options) {
    return (await this.#post("/verify", request, { key: keyOf(options) })).body;
  }

  async checkCode(id, code) {
    return (await this.#post(`/verify/${encode(id)}/check`, { code }, {})).body;
  }

  async readVerification(id) {
    return this.#get(`/verify/${encode(id)}`);
  }

  async registerSender(sender) {
    return (await this.#post("/senderId", sender, {})).body;
  }

  async confirmSender(id, code) {
    return (await this.#post(`/senderId/confirm/${encode(id)}`, { code }, {})).body;
  }

  async readSender(id) {
    return this.#get(`/senderId/${encode(id)}`);
  }

  listSenders(query) {
    return this.#byOffset("/senderId", query);
  }

  async lookUp(request, options) {
    const query = request.callBackUrl === undefined ? { callback: "none" } : undefined;
    const { body } = await this.#post("/hlr", request, { key: keyOf(options), query });
    return body[0];
  }

  async readLookup(id) {
    return this.#get(`/hlr/${encode(id)}`);
  }

  async listRates(query) {
    return this.#get("/rates", query);
  }

  async readOperator(id) {
    return this.#get(`/operators/${encode(id)}`);
  }

  async *listNetworks(country) {
    for (let page = 1; ; page += 1) {
      const networks = await this.#get(`/mccmnc/${encode(country)}`, { Page: page });
      yield* networks;
      if (networks.length < 100) {
        return;
      }
    }
  }

  async listPrefixes(country) {
    return this.#get(`/prefixes/${encode(country)}`);
  }

  async correctNumbers(numbers) {
    return (await this.#post("/numberCorrection", numbers, { safe: true })).body;
  }

  async readToken(query) {
    return this.#get("/token", query);
  }

  async #get(path, query) {
    return (await this.#request("GET", path, { query, safe: true })).body;
  }

  async #post(path, value, { key, query, safe = false }) {
    // The repetition must be the same, byte for byte.
    const body = JSON.stringify(value);
    return this.#request("POST", path, { body, key, query, safe: safe || key !== undefined });
  }

  async *#byCursor(path, query = {}) {
    for (let cursor = query.cursor; ; ) {
      const asked = { ...query, cursor };
      const { response, body } = await this.#request("GET", path, { query: asked, safe: true });
      yield* body;
      cursor = response.headers.get("x-next-cursor") ?? undefined;
      if (cursor === undefined) {
        return;
      }
    }
  }

  async *#byOffset(path, query = {}) {
    const limit = query.limit ?? 1000;
    for (let offset = query.offset ?? 0; ; offset += limit) {
      const page = await this.#get(path, { ...query, limit, offset });
      yield* page;
      if (page.length < limit) {
        return;
      }
    }
  }

  /** `safe`: a repetition changes nothing, so the request is repeated after a failure. */
  async #request(method, path, { body, key, query, safe = false }) {
    for (let attempt = 0; ; attempt += 1) {
      const isLast = attempt >= this.#retries;
      let response, text;
      try {
        response = await this.#fetch(this.#baseUrl + path + queryText(query), {
          method,
          headers: this.#headers(body, key),
          body,
          // The token must not follow a redirect to another host.
          redirect: "error",
          signal: AbortSignal.timeout(this.#timeoutMs),
        });
        text = await response.text();
      } catch (error) {
        if (isLast || !safe) {
          throw error;
        }
        await pause(backoff(attempt));
        continue;
      }
      if (response.ok) {
        return { response, body: JSON.parse(text) };
      }
      const error = new ApiError(response, readMessage(text, response.status));
      // The service refuses with 429 before it does anything.
      const isRetried = response.status === 429 || (safe && RETRIED.has(response.status));
      const wait = error.retryAfterS === null ? backoff(attempt) : error.retryAfterS * 1000;
      if (isLast || !isRetried || wait > MAX_WAIT_MS) {
        throw error;
      }
      await pause(wait);
    }
  }

  #headers(body, key) {
    const headers = { [`${this.#headerPrefix}-Token`]: this.#token, Accept: "application/json" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
    }
    if (key !== undefined) {
      headers["Idempotency-Key"] = key;
    }
    return headers;
  }
}

function keyOf(options) {
  return options?.idempotencyKey ?? randomUUID();
}

function queryText(query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text === "" ? "" : `?${text}`;
}

function encode(value) {
  return encodeURIComponent(String(value));
}

function readMessage(text, status) {
  try {
    return JSON.parse(text).message ?? `Status ${status}.`;
  } catch {
    return `Status ${status}.`;
  }
}

function readNumber(text) {
  return text === null || !/^[0-9]+$/.test(text) ? null : Number(text);
}

function backoff(attempt) {
  return Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** attempt) * (0.5 + Math.random() / 2);
}

function pause(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
