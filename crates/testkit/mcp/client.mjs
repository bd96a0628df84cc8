// Connects with an official SDK for TypeScript, lists the tools, calls some of them, and writes the results.
//
// Reads {"sdk": 1 or 2, "mode": "legacy" or "auto", "url", "token", "calls": [[tool, arguments, awaited], …]} from standard
// input. An argument {"result": n, "path": [key, …]} stands for a value in the structured content of the result n.
// "awaited" is optional: a path such as the above. The call is repeated until there is a value in its result.
// Writes {"version", "server", "tools", "results"} or, if the SDK threw, {"error"}.
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

const REPEAT_AFTER_MS = 100;
const MOST_REPETITIONS = 600;

const task = JSON.parse(await text(process.stdin));
const { Client, StreamableHTTPClientTransport } =
  task.sdk === 1
    ? {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      }
    : await import('@modelcontextprotocol/client');

async function run() {
  const options = task.sdk === 1 ? {} : { versionNegotiation: { mode: task.mode } };
  const client = new Client({ name: 'test', version: '1' }, options);
  const headers = { Authorization: `Bearer ${task.token}` };
  const transport = new StreamableHTTPClientTransport(new URL(task.url), { requestInit: { headers } });
  await client.connect(transport);
  // The list first, because the SDK checks results with the schemas in it.
  const { tools } = await client.listTools();
  const results = [];
  const valueAt = (path, result) => path.reduce((content, key) => content?.[key], result.structuredContent);
  const insert = (value) => (value?.path ? valueAt(value.path, results[value.result]) : value);
  for (const [name, given, awaited] of task.calls) {
    try {
      const args = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, insert(value)]));
      let result = await client.callTool({ name, arguments: args });
      for (let n = 0; awaited && valueAt(awaited, result) == null && n < MOST_REPETITIONS; n++) {
        await sleep(REPEAT_AFTER_MS);
        result = await client.callTool({ name, arguments: args });
      }
      results.push(result);
    } catch (error) {
      results.push({ error: String(error) });
    }
  }
  const version = task.sdk === 1 ? transport.protocolVersion : client.getNegotiatedProtocolVersion();
  const server = client.getServerVersion();
  await client.close();
  return { version, server, tools, results };
}

const written = await run().catch((error) => ({ error: String(error) }));
// A pipe takes a long text in pieces.
process.stdout.write(JSON.stringify(written), () => process.exit(0));
