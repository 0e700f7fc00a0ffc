// Draws the boards of the chart with what a Prometheus has: node draw.mjs PROMETHEUS [END [SECONDS]]
// The pictures are docs/images/board-*.png. PROMETHEUS is an address such as http://localhost:9090, END the seconds
// since 1970 at which the pictures end (now), SECONDS how far they go back (an hour).
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const boards = here('../../charts/kdedup/dashboards/');
const [prometheus, end = Math.floor(Date.now() / 1000), seconds = 3600] = process.argv.slice(2);
if (!prometheus) throw new Error('usage: node draw.mjs PROMETHEUS [END [SECONDS]]');

const { outputFiles } = buildSync({
  entryPoints: [here('board.jsx')], bundle: true, write: false, outdir: '/', format: 'esm', jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"production"', global: 'globalThis' }, logLevel: 'error',
});
const [script, style] = ['.js', '.css'].map((end) => outputFiles.find((f) => f.path.endsWith(end)).text);

const server = createServer(async (request, response) => {
  try {
    const { pathname } = new URL(request.url, 'http://page');
    if (pathname.startsWith('/api/')) response.end(await (await fetch(prometheus + request.url)).text());
    else if (pathname.startsWith('/board/')) response.end(readFileSync(boards + pathname.slice('/board/'.length)));
    else if (pathname === '/script') {
      response.setHeader('content-type', 'text/javascript; charset=utf-8');
      response.end(script);
    }
    else {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(`<style>${style}</style><div id=root></div><script type=module src=/script></script>`);
    }
  } catch (e) {
    response.writeHead(500);
    response.end(String(e));
  }
});
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const width = 1600;
for (const file of readdirSync(boards)) {
  const name = file.replace('.json', '');
  const { panels } = JSON.parse(readFileSync(boards + file));
  const height = 56 + 38 * Math.max(...panels.map(({ gridPos: g }) => g.y + g.h));
  const query = new URLSearchParams({ board: file, from: end - seconds, to: end, width });
  const picture = here(`../../docs/images/board-${name.replace('kdedup-', '')}.png`);
  await promisify(execFile)('chromium', ['--headless', '--no-sandbox', '--disable-gpu', '--hide-scrollbars',
    `--window-size=${width},${height}`, '--virtual-time-budget=15000',
    `--screenshot=${picture}`, `http://127.0.0.1:${server.address().port}/?${query}`]);
  console.log(`drew ${name}`);
}
server.close();
