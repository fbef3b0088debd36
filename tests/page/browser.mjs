// What the scripts beside this file share: the program, the browser, and what is watched in it.

import { execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = join(dirname(fileURLToPath(import.meta.url)), '../..');
export const scratch = process.env.SCRATCH;
export const golden = join(root, 'transcripts/demo.jsonl');

const program = process.env.UNDERTEXT;
const most = { maxBuffer: 1 << 30 };

// What the program prints.
export const undertext = (...line) =>
  execFileSync(program, line, { cwd: scratch, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...most });

// The program while it runs; `line()` gives the next line that it prints.
export const begin = (...line) => {
  const child = spawn(program, line, { cwd: scratch, stdio: ['ignore', 'pipe', 'ignore'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = new Promise((done) => child.once('exit', (code, signal) => done(code ?? signal)));
  return { child, ended, line: async () => (await lines.next()).value };
};

// Writes the page of a transcript, and returns its address.
export const page = (transcript, name) => {
  const out = join(scratch, `${name}.html`);
  undertext('page', transcript, '--out', out);
  return `file://${out}`;
};

export const launch = async () => {
  const { chromium } = await import(process.env.PLAYWRIGHT);
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: [
      '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
      '--disable-background-networking', '--disable-component-update', '--disable-sync',
    ],
  });
};

// Opens an address in a fresh context. `told` gathers whatever a page must not do: ask for anything
// but `allowed`, leave, speak up, complain, break its policy.
export const open = async (browser, address, { allowed = (url) => url === address, ...options } = {}) => {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const tab = await context.newPage();
  const told = [];
  const tell = (text) => told.length < 50 && told.push(text.slice(0, 300));
  context.on('page', (other) => other !== tab && tell(`opened ${other.url()}`));
  context.on('request', (request) => {
    if (!allowed(request.url().split('#')[0])) tell(`asked for ${request.url()}`);
  });
  tab.on('dialog', (dialog) => { tell(`dialog ${dialog.message()}`); dialog.dismiss(); });
  tab.on('console', (message) => tell(`console ${message.type()}: ${message.text()}`));
  tab.on('pageerror', (error) => tell(`error ${error.stack ?? error}`));
  tab.on('framenavigated', (frame) => {
    if (!allowed(frame.url().split('#')[0])) tell(`went to ${frame.url()}`);
  });
  tab.on('download', () => tell('a download'));
  await tab.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (event) => {
      window.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const start = performance.now();
  await tab.goto(address, { waitUntil: 'load' });
  const opened = performance.now() - start;
  return { tab, told, opened, close: () => context.close() };
};
