// Forwards every request with a token added, for a tool that cannot send one. Prints its port.
//
//   node bearer-proxy.mjs TARGET   reads the token from standard input and ends when that is closed
import http from 'node:http';
import readline from 'node:readline';

const target = new URL(process.argv[2]);
const lines = readline.createInterface({ input: process.stdin });
const token = await new Promise((resolve) => lines.once('line', resolve));
lines.once('close', () => process.exit(0));

const server = http.createServer((request, response) => {
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  // Replaces its own name with that of the target. Other names are forwarded for the target to check.
  const { port } = server.address();
  for (const name of ['localhost', '127.0.0.1']) {
    if (headers.host === `${name}:${port}`) headers.host = target.host;
    if (headers.origin === `http://${name}:${port}`) headers.origin = target.origin;
  }
  const { method, url: path } = request;
  const to = { hostname: target.hostname, port: target.port, method, path, headers };
  const onward = http.request(to, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  onward.on('error', () => response.destroy());
  request.pipe(onward);
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
