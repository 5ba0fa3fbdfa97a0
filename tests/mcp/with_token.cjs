// Puts a token on every request that it passes on: the conformance suite has no way to send one.
//
//     node with_token.cjs UPSTREAM-PORT TOKEN        prints its own port
"use strict";
const http = require("node:http");

const [upstream, token] = process.argv.slice(2);
const server = http.createServer((request, response) => {
  const own = `127.0.0.1:${server.address().port}`;
  const named = [own, own.replace("127.0.0.1", "localhost")];
  const headers = { ...request.headers, authorization: `Bearer ${token}` };
  const here = `127.0.0.1:${upstream}`;
  // A name that is not ours is passed on as it came: whoever sent it wants to see it refused.
  if (named.includes(headers.host)) headers.host = here;
  if (named.includes((headers.origin || "").replace("http://", ""))) headers.origin = `http://${here}`;
  const options = { host: "127.0.0.1", port: upstream, method: request.method, path: request.url, headers };
  const passed = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", (error) => response.writeHead(502).end(String(error)));
  request.pipe(passed);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
