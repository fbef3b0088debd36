// Transcripts made for the page: every kind of entry and of overlay, with strings from elsewhere.

import { readFileSync, writeFileSync } from 'node:fs';

const table = Array.from({ length: 256 }, (_, n) => {
  let crc = n;
  for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  return crc >>> 0;
});

// The line of an entry, or of JSON text without its closing brace.
export const line = (entry) => {
  const json = typeof entry === 'string' ? entry : JSON.stringify(entry).slice(0, -1);
  let crc = 0xffffffff;
  for (const byte of Buffer.from(json)) crc = (crc >>> 8) ^ table[(crc ^ byte) & 0xff];
  const digits = ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, '0');
  return `${json},"crc":"${digits}"}\n`;
};

// Every entry of a file.
export const entries = (path) =>
  readFileSync(path, 'utf8').split('\n').filter(Boolean).map((text) => JSON.parse(text));

// Writes so many rounds; `next` gives the strings, `setup` is that of a real run. A calm one is compacted
// as long runs are: band after band, with few other overlays.
export const write = (path, { setup, rounds, next, calm = false }) => {
  const lines = [];
  const start = Date.parse('2026-11-21T20:00:00Z');
  let id = 0;
  const put = (type, body, raw) => {
    id += 1;
    const at = new Date(start + id * 731).toISOString();
    const entry = { id, at, type, ...body };
    delete entry.crc;
    lines.push(line(raw ? `${JSON.stringify(entry).slice(0, -1)},${raw}` : entry));
    return id;
  };
  const sum = '0123456789abcdef'.repeat(4);
  const sha256 = `sha256:${sum}`;

  put('run', {
    format: 1,
    run: '01a1ffb1-ba00-7000-8000-0000deadbeef',
    workspace: next(),
    generator: next(),
    name: next(),
    parent: { run: '01a1ffb1-ba00-7000-8000-0000deadbee0', entry: 1 },
  });
  const own = structuredClone(setup);
  const { wire } = own;
  wire.instructions = `${next()}\n${next()}`;
  wire.models.main.name = next();
  wire.tools = wire.tools.slice(0, 3);
  for (const tool of wire.tools) tool.description = next();
  for (let count = 0; count < 5; count += 1) {
    wire.tools.push({ ...structuredClone(wire.tools[0]), name: next(), description: next() });
  }
  const setupId = put('setup', own);

  const attachments = () => [
    { name: next(), media: next(), text: next() },
    { name: next(), media: 'text/html', text: next() },
  ];
  let task = put('user', { origin: 'task', text: next(), attachments: attachments() });
  const asked = [];
  const calls = [];
  const overlays = [];
  let summed = 0;
  let size = 4000;
  const request = (purpose, round) => {
    size += 500;
    const tokens = size;
    return put('request', {
      purpose,
      ...(round ? { round } : {}),
      setup: setupId,
      renderer: 1,
      body: { sha256, bytes: tokens * 4 },
      estimate: { chars: tokens * 4, base: tokens, factor: 1000, tokens },
    });
  };
  const lay = (origin, layer) => {
    const before = size;
    size = Math.max(3000, Math.floor(size * 0.7));
    overlays.push(put('overlay', {
      origin, rule: next(), pass: id + 1, layer, size: { before, after: size }, reason: next(),
    }));
  };
  const argued = (n) => {
    const field = (name, value) => `${JSON.stringify(name)}:${JSON.stringify(value)}`;
    if (n % 3 === 0) return next();
    return `{${field('path', next())},${field(next(), next())}}`;
  };

  for (let round = 1; round <= rounds; round += 1) {
    if (round % 20 === 0) {
      task = put('user', { origin: 'follow_up', text: next(), attachments: attachments() });
    }
    if (round % 15 === 0) put('user', { origin: 'runtime', text: next() });
    const sent = request({ kind: 'round' }, round);
    if (round % 25 === 0) {
      put('fault', {
        request: sent, class: 'rate', status: 429, message: next(), attempt: 1, wait_ms: 20,
        refused_call: next(),
      });
    }
    const count = round === rounds ? 0 : 3;
    const response = put('response', {
      request: sent,
      text: next(),
      reasoning: [
        { field: 'reasoning_content', text: next() },
        { raw: JSON.stringify({ type: 'reasoning', summary: next() }), field: 'reasoning_details' },
      ],
      calls: Array.from({ length: count }, (_, n) => ({
        provider_id: next(),
        name: next(),
        arguments: argued(round + n),
        extra: JSON.stringify({ [next()]: next() }),
      })),
      ending: 'complete',
      finish: next(),
      usage: { input: size, cached: Math.floor(size / 2), output: 40, reasoning: 9 },
      extra: JSON.stringify({ id: next() }),
      model: next(),
      provider_request: next(),
      ms: { first: 300, all: 900 },
    });
    asked.push({ request: sent, response });
    for (let n = 1; n <= count; n += 1) {
      const call = `${response}.${n}`;
      if (n === 1) put('started', { call });
      put('result', {
        call,
        status: ['ok', 'error', 'denied', 'timeout'][(round + n) % 4],
        content: n === 3 ? `${next()}\n`.repeat(8) : `${next()}\n${next()}`,
        facts: { read: [{ path: next(), sha256 }], wrote: [{ path: next(), sha256 }], cwd: next() },
        ...(n === 2 && round % 9 === 0 ? { clipped: { bytes: 123456, blob: sha256 } } : {}),
        ms: 7,
      });
      calls.push(call);
    }
    const old = (back) => calls.at(-Math.min(back, calls.length));
    const rest = calm && round % 60 > 12 ? -1 : round % 12;
    if (rest === 2) lay('micro', { kind: 'stub', form: 'previous', results: [old(4), old(5)] });
    if (rest === 3) lay('auto', { kind: 'stub', form: 'compacted', results: [old(6)], arguments: [old(6), old(4)] });
    if (rest === 4) lay('auto', { kind: 'stub', form: 'stale', results: [old(7)], by: { [old(7)]: old(1) } });
    if (rest === 5) lay('user', { kind: 'hide', calls: [old(9)], reasoning: [asked.at(-2).response], why: { [old(9)]: old(2) } });
    if (rest === 6) lay('user', { kind: 'hide', attachments: [[task, 1], [task, 2], [task, 9]] });
    if (rest === 7) lay('user', { kind: 'show', calls: [old(10), old(16)] });
    if (rest === 8) lay('recovery', { kind: 'hide', rounds: [[asked.at(-5).request, asked.at(-4).request - 1]] });
    if (rest === 9) put('retract', { overlays: [overlays.at(-2)], origin: 'user' });
    if (rest === 10) put('pin', { entry: asked.at(-1).response });
    // What points at nothing, at what is yet to come, or at another kind.
    if (rest === 11) lay('tool', { kind: 'stub', form: 'previous', results: ['999999.1', `${id + 9}.1`, '2.1', old(1)] });
    if (round % 30 === 0) {
      const [from, to] = [asked.at(calm ? summed : -28).request, asked.at(-10).request - 1];
      summed = asked.length - 10;
      const summary = request({
        kind: 'summary', as_of: id, model: 'main', span: [from, to], clip: 4000, focus: next(), keep: [next(), next()],
      });
      const written = put('response', {
        request: summary, text: next(), ending: 'complete', finish: next(), usage: { input: 900, output: 20 }, model: next(),
      });
      lay('tool', {
        kind: 'summary',
        span: [from, to],
        text: `${next()}\n${next()}`,
        by: 'model',
        focus: next(),
        parts: [{ span: [from, to], response: written, text: next() }],
        depth: 1,
        carry: { entries: [task], calls: [old(3)], state: next(), survival: next() },
      });
    }
    if (round % 35 === 0) put('note', { kind: 'warning', text: next() });
    if (round % 40 === 0) put('note', { kind: 'damage', text: next() });
    if (round % 45 === 0) put('note', { kind: 'hook', text: next(), keep: [next()], ms: 3 });
    // A later version's entries; in JSON, half of a pair of surrogates can be written.
    if (round % 50 === 0) put(next() || 'unknown', { [next()]: next(), deep: { [next()]: [next()] } }, `"half":"\\ud800${round}\\udc00"`);
    if (round % 55 === 0) put('end', { reason: 'interrupted', text: next(), totals: { rounds: round, requests: round, calls: 3, input: 9, cached: 1, output: 2, ms: 5 } });
  }
  put('end', {
    reason: 'finished',
    text: next(),
    totals: { rounds, requests: rounds, calls: calls.length, input: 9000, cached: 4000, output: 900, cost_usd_micro: 12345, ms: 99000 },
  });
  writeFileSync(path, lines.join(''), { mode: 0o600 });
  return { entries: id, asked, overlays };
};
