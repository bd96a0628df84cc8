// Connects with an official SDK for TypeScript as a person would: the client gets a 401, finds the authorization server,
// registers, and sends the person there, who signs in with an invitation and approves.
//
// Reads {"sdk": 1 or 2, "url", "invitation", "password", "approve": [scope, …], "calls": [[tool, arguments], …]} from
// standard input. Writes {"client", "scope", "shown", "askedAgain", "results", "refusals"} or, if the SDK threw, {"error"}.
// "shown" is the page that the person saw, "askedAgain" the scope of a second authorization request.
import { text } from 'node:stream/consumers';

const task = JSON.parse(await text(process.stdin));
const { Client, StreamableHTTPClientTransport } =
  task.sdk === 1
    ? {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      }
    : await import('@modelcontextprotocol/client');

const REDIRECT = 'http://127.0.0.1:33418/callback';
const NAME = 'TypeScript SDK';

// A person with a browser: stores cookies, follows redirects within this service.
class Person {
  #cookies = new Map();

  async #visit(url, form) {
    const headers = { Cookie: [...this.#cookies].map((pair) => pair.join('=')).join('; ') };
    if (form) headers.Origin = new URL(url).origin;
    const method = form ? 'POST' : 'GET';
    const answer = await fetch(url, { method, headers, body: form, redirect: 'manual' });
    for (const cookie of answer.headers.getSetCookie()) {
      const [name, value] = cookie.split(';')[0].split('=');
      this.#cookies.set(name, value);
    }
    const location = answer.headers.get('location');
    if (!location) return { url, page: await answer.text() };
    const next = new URL(location, url);
    return next.origin === new URL(url).origin ? this.#visit(next.href) : { url: next.href };
  }

  // Signs in, approves the scopes of the task, and returns the parameters of the redirect.
  async approve(authorize) {
    const { invitation, password } = task;
    const { page } = await this.#visit(invitation);
    const chosen = new URLSearchParams({ form_token: formToken(page), password, repeated: password });
    await this.#visit(invitation, chosen);
    const consent = await this.#visit(authorize.href);
    this.shown = consent.page;
    const form = new URLSearchParams({ form_token: formToken(consent.page), decision: 'approve' });
    for (const scope of task.approve) form.append('scope', scope);
    return new URL((await this.#visit(consent.url, form)).url).searchParams;
  }
}

// The token of the page's own form, which follows the form for signing out.
function formToken(page) {
  return [...page.matchAll(/name="form_token" value="([^"]+)"/g)].at(-1)[1];
}

// Stores the tokens and the registration of the client, and its authorization requests.
class Memory {
  asked = [];
  get redirectUrl() {
    return REDIRECT;
  }
  get clientMetadata() {
    return { client_name: NAME, redirect_uris: [REDIRECT], grant_types: ['authorization_code', 'refresh_token'] };
  }
  clientInformation() {
    return this.client;
  }
  saveClientInformation(client) {
    this.client = client;
  }
  tokens() {
    return this.given;
  }
  saveTokens(tokens) {
    this.given = tokens;
  }
  redirectToAuthorization(url) {
    this.asked.push(url);
  }
  saveCodeVerifier(verifier) {
    this.verifier = verifier;
  }
  codeVerifier() {
    return this.verifier;
  }
}

async function run() {
  const [person, memory] = [new Person(), new Memory()];
  const connect = async () => {
    const client = new Client({ name: 'test', version: '1' });
    const transport = new StreamableHTTPClientTransport(new URL(task.url), { authProvider: memory });
    const refused = await client.connect(transport).then(() => false, (error) => error);
    return { client, transport, refused };
  };
  const first = await connect();
  if (!first.refused || !memory.asked.length) throw first.refused || new Error('connected without a token');
  const answer = await person.approve(memory.asked[0]);
  if (task.sdk === 1) await first.transport.finishAuth(answer.get('code'));
  else await first.transport.finishAuth(answer.get('code'), answer.get('iss') ?? undefined);
  const { client, refused } = await connect();
  if (refused) throw refused;
  await client.listTools();
  const [results, refusals] = [[], []];
  for (const [name, args] of task.calls) {
    try {
      results.push(await client.callTool({ name, arguments: args }));
    } catch (error) {
      refusals.push(String(error));
    }
  }
  const { shown } = person;
  const askedAgain = memory.asked[1]?.searchParams.get('scope');
  return { client: memory.client.client_name, scope: memory.given.scope, shown, askedAgain, results, refusals };
}

const written = await run().catch((error) => ({ error: String(error?.stack ?? error) }));
console.log(JSON.stringify(written));
process.exit(0);
