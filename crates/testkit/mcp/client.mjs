// Connects with an official SDK for TypeScript, lists the tools, calls some of them, and writes the results.
//
// Reads {"sdk": 1 or 2, "mode": "legacy" or "auto", "url", "token", "calls": [[tool, arguments], …]} from standard input.
// An argument {"result": n, "path": [key, …]} stands for a value in the structured content of the result n.
// Writes {"version", "server", "tools", "results"} or, if the SDK threw, {"error"}.
import { text } from 'node:stream/consumers';

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
  const insert = (value) =>
    value?.path ? value.path.reduce((content, key) => content[key], results[value.result].structuredContent) : value;
  for (const [name, given] of task.calls) {
    try {
      const args = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, insert(value)]));
      results.push(await client.callTool({ name, arguments: args }));
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
