// Connects with an official SDK for TypeScript, lists the tools, calls some, and writes down what came of it.
//
// Reads {"sdk": 1 or 2, "mode": "legacy" or "auto", "url", "token", "calls": [[tool, arguments], …]} from standard input.
// Writes {"version", "server", "tools", "results"} or, where the SDK threw, {"error"}.
import { text } from 'node:stream/consumers';

const order = JSON.parse(await text(process.stdin));
const { Client, StreamableHTTPClientTransport } =
  order.sdk === 1
    ? {
        ...(await import('@modelcontextprotocol/sdk/client/index.js')),
        ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
      }
    : await import('@modelcontextprotocol/client');

async function run() {
  const options = order.sdk === 1 ? {} : { versionNegotiation: { mode: order.mode } };
  const client = new Client({ name: 'test', version: '1' }, options);
  const headers = { Authorization: `Bearer ${order.token}` };
  const transport = new StreamableHTTPClientTransport(new URL(order.url), { requestInit: { headers } });
  await client.connect(transport);
  // The list first: with it the SDK knows the schemas that it holds results against.
  const { tools } = await client.listTools();
  const results = [];
  for (const [name, args] of order.calls) {
    try {
      results.push(await client.callTool({ name, arguments: args }));
    } catch (error) {
      results.push({ error: String(error) });
    }
  }
  const version = order.sdk === 1 ? transport.protocolVersion : client.getNegotiatedProtocolVersion();
  const server = client.getServerVersion();
  await client.close();
  return { version, server, tools, results };
}

const written = await run().catch((error) => ({ error: String(error) }));
console.log(JSON.stringify(written));
process.exit(0);
