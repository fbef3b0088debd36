// Opens pages in Chromium and tries what they promise. The program says what is right: of the same
// transcript, or of one in which what is lifted was never laid.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { begin, golden, launch, open, page, scratch, undertext } from './browser.mjs';
import { edgesRun } from './edges.mjs';
import { hostile, plain } from './hostile.mjs';
import { entries, line, write } from './written.mjs';

let passed = 0;
let failed = 0;
const check = (name, wrong) => {
  const list = [wrong].flat().filter(Boolean);
  if (list.length === 0) {
    passed += 1;
    return;
  }
  failed += 1;
  console.log(`failed: ${name}`);
  for (const text of list.slice(0, 8)) console.log(`  ${text}`);
};
const note = (text) => console.log(text);
const spread = (list, most) =>
  list.filter((_, place) => list.length <= most || place % Math.ceil(list.length / most) === 0);

// What the page did that it must not do.
const quiet = async (name, { tab, told }) => {
  check(`${name}: nothing runs, loads, leaves or complains`, [
    ...told,
    ...(await tab.evaluate(() => window.violations)),
    ...(await tab.evaluate(() => (window.planted === undefined ? [] : [`planted ${window.planted}`]))),
  ]);
};

// The messages of a request as the program makes them, of the entries before it; those that are
// lifted are notes instead.
const told = (lines, request, lifted) => {
  const before = lines.slice(0, lines.findIndex(({ id }) => id === request));
  const text = before.map(({ id, at, json }) =>
    lifted.has(id) ? line({ id, at, type: 'note', kind: 'warning', text: '' }) : json,
  );
  const path = join(scratch, 'told.jsonl');
  writeFileSync(path, text.join(''));
  const messages = undertext('print', path, '--compacted', '--format', 'json');
  return messages.split('\n').filter(Boolean).map((json) => JSON.parse(json))
    .filter(({ role }) => role !== 'system')
    .map(({ role, content, tool_calls: calls }) => ({
      role,
      text: content ?? '',
      arguments: (calls ?? []).map((call) => call.function.arguments),
    }));
};

// Arguments that are no JSON object are sent as an empty one.
const sent = (text) => {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? text : '{}';
  } catch {
    return '{}';
  }
};

const difference = (request, lifted, page, program) => {
  const place = [...page.keys()].find((at) => JSON.stringify(page[at]) !== JSON.stringify(program[at]));
  if (place === undefined && page.length === program.length) return null;
  const at = place ?? Math.min(page.length, program.length);
  const show = (message) => JSON.stringify(message ?? 'none').slice(0, 200);
  return `e${request} without ${[...lifted]}: message ${at + 1}: ${show(page[at])} for ${show(program[at])}`;
};

// Each layer alone, all at once, and none.
const layers = async (name, { tab }, path, most) => {
  const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean)
    .map((json) => ({ ...JSON.parse(json), json: `${json}\n` }));
  const requests = await tab.evaluate(() =>
    window.undertext.requests().filter(({ round }) => round !== undefined).map(({ id }) => id));
  const overlays = async (id) => tab.evaluate((id) => window.undertext.overlays(id), id);
  const tried = [];
  for (const id of spread(requests, most)) tried.push([id, []]);
  // Of each overlay, a request soon after it, and the last one.
  const laid = lines.filter(({ type }) => type === 'overlay').map(({ id }) => id);
  for (const id of spread(laid, most)) {
    for (const request of [requests.find((request) => request > id), requests.at(-1)]) {
      if (request !== undefined && (await overlays(request)).includes(id)) tried.push([request, [id]]);
    }
  }
  for (const id of spread(requests, Math.ceil(most / 3))) tried.push([id, await overlays(id)]);
  const wrong = [];
  for (const [id, lifted] of tried) {
    const shown = await tab.evaluate(([id, lifted]) => window.undertext.messages(id, lifted), [id, lifted]);
    const flat = shown.map(({ role, text, calls }) => ({
      role, text, arguments: (calls ?? []).map((call) => call.arguments).map(sent),
    }));
    wrong.push(difference(id, lifted, flat, told(lines, id, new Set(lifted))));
  }
  check(`${name}: ${tried.length} readings are those of the program`, wrong);
  check(`${name}: the layers give what was sent`, await tab.evaluate(() => window.undertext.check()));

  // What is said to change nothing when it is lifted alone.
  const idle = await tab.evaluate((requests) => requests.flatMap((id) => {
    const all = JSON.stringify(window.undertext.messages(id, []));
    return window.undertext.idle(id).map((overlay) =>
      [overlay, id, JSON.stringify(window.undertext.messages(id, [overlay])) === all]);
  }), spread(requests, most));
  check(`${name}: ${idle.length} times, a layer that changes nothing is told`, [
    idle.length === 0 && 'none is',
    ...idle.map(([overlay, id, same]) => !same && `e${overlay} changes e${id}`),
  ]);
};

const marks = async (name, { tab }, path) => {
  const laid = entries(path).filter(({ type }) => type === 'overlay').map(({ id }) => String(id));
  const drawn = await tab.evaluate(() =>
    [...document.querySelectorAll('[data-mark]')].map((mark) => mark.dataset.mark));
  check(`${name}: a mark for each of ${laid.length} overlays`,
    laid.filter((id) => !drawn.includes(id)).map((id) => `none for e${id}`));
};

const frames = (tab, count = 2) => tab.evaluate(async (count) => {
  for (let done = 0; done < count; done += 1) await new Promise(requestAnimationFrame);
}, count);

// All that is shown of a list from its top to its end, opening what can be opened.
const walk = (tab, id) => tab.evaluate(async (id) => {
  const list = document.getElementById(id);
  const seen = new Set();
  let nodes = 0;
  list.scrollTop = 0;
  for (let step = 0; step < 2000; step += 1) {
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    for (const more of list.querySelectorAll('[data-more], details:not([open]) > summary')) {
      if (!more.dataset.opened) {
        more.dataset.opened = 'yes';
        more.click();
      }
    }
    for (const text of list.querySelectorAll('[data-text]')) seen.add(text.textContent);
    nodes = Math.max(nodes, document.getElementsByTagName('*').length);
    const before = list.scrollTop;
    list.scrollTop += list.clientHeight * 0.9;
    if (list.scrollTop === before) break;
  }
  return { texts: [...seen], nodes };
}, id);

// Both themes, and whether what is read can be read: WCAG asks for a contrast of 4.5.
const contrast = (tab) => tab.evaluate(() => {
  const parse = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const over = ([r, g, b, a = 1], below) => [r, g, b].map((c, at) => c * a + below[at] * (1 - a));
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((below, layer) => (layer.length < 3 ? below : over(layer, below)), [255, 255, 255]);
  };
  const wrong = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const element = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest('script, style, svg, noscript, [aria-hidden=true], :disabled')) continue;
    const style = getComputedStyle(element);
    const below = ground(element);
    const colour = over(parse(style.color), below);
    const [one, other] = [light(colour), light(below)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    if (ratio < needed) {
      const key = `${element.tagName.toLowerCase()}.${element.className}#${element.id}`;
      wrong.set(key, `${key}: ${ratio.toFixed(2)} "${texts.currentNode.data.trim().slice(0, 30)}"`);
    }
  }
  return [...wrong.values()];
});

// What can be used has a name, and nothing is wider than the screen.
const named = (tab) => tab.evaluate(() => {
  const wrong = [];
  for (const element of document.querySelectorAll('button, input, select, a[href], [role=tab], [role=switch], [tabindex="0"]')) {
    const label = element.getAttribute('aria-label') || element.textContent.trim() || element.title
      || element.labels?.[0]?.textContent || element.getAttribute('aria-labelledby')
      || element.closest('[aria-label]')?.getAttribute('aria-label');
    if (!label) wrong.push(`no name: ${element.outerHTML.slice(0, 120)}`);
  }
  const ids = [...document.querySelectorAll('[id]')].map((element) => element.id);
  for (const id of new Set(ids.filter((id, at) => ids.indexOf(id) !== at))) wrong.push(`id twice: ${id}`);
  return wrong;
});
const width = (tab) => tab.evaluate(() => {
  const root = document.scrollingElement;
  return root.scrollWidth > root.clientWidth ? [`${root.scrollWidth} in ${root.clientWidth}`] : [];
});

const goldenRun = async (browser) => {
  const opened = await open(browser, page(golden, 'golden'));
  const { tab } = opened;
  await layers('golden', opened, golden, 40);
  await marks('golden', opened, golden);

  // By hand: what an overlay put away stands there again when its layer is lifted.
  const all = entries(golden);
  const stub = all.find(({ type, layer }) => type === 'overlay' && layer.kind === 'stub');
  const call = stub.layer.results[0];
  const raw = all.find((entry) => entry.type === 'result' && entry.call === call).content;
  const request = all.find(({ id, type, round }) => id > stub.id && type === 'request' && round).id;
  const reads = async () => (await walk(tab, 'messages')).texts.some((text) => text.includes(raw));
  await tab.evaluate((id) => window.undertext.open(`#e${id}`), request);
  await frames(tab);
  check('golden: a stub covers its result', (await reads()) && `${call} reads in full at e${request}`);
  await tab.click(`[data-overlay="${stub.id}"]`);
  await frames(tab);
  check('golden: lifting a layer by hand shows the text beneath', !(await reads()) && `${call} at e${request}`);
  await tab.click('#lay-all');
  await frames(tab);
  check('golden: laid again, it covers it', (await reads()) && `${call} reads in full at e${request}`);

  // Keyboard, links, search.
  const hash = () => tab.evaluate(() => location.hash);
  await tab.evaluate(() => { document.activeElement?.blur(); });
  const places = [];
  for (const key of ['j', 'k', 'k', '?', 'Escape', ']', '[']) {
    await tab.keyboard.press(key);
    await frames(tab);
    places.push(await hash());
  }
  check('golden: j and k go from request to request',
    (places[0] === places[1] || places[1] === places[2]) && places.join(' '));
  await tab.keyboard.press('/');
  await tab.keyboard.type('voucher_value');
  const found = tab.locator('#found');
  await tab.waitForFunction(() => /\d/.test(document.getElementById('found').textContent));
  const text = await found.textContent();
  const holding = all.filter((entry) => JSON.stringify(entry).includes('voucher_value')).length;
  check('golden: a search counts', Number(text.match(/(\d+)\D*$/)?.[1]) < holding && `${text} for ${holding} entries`);
  await tab.keyboard.press('Escape');
  for (const link of ['#e20', '#r12', '#28.2']) {
    const other = await open(browser, `file://${join(scratch, 'golden.html')}${link}`, {
      allowed: (url) => url === `file://${join(scratch, 'golden.html')}`,
    });
    await frames(other.tab, 4);
    const named = link.startsWith('#r') ? 'r12' : link.slice(1);
    const shown = await other.tab.evaluate((named) => document.body.innerText.includes(named), named);
    check(`golden: ${link} leads there`, [shown ? null : 'it is not shown', ...other.told]);
    await other.close();
  }
  await quiet('golden', opened);
  await opened.close();

  for (const colorScheme of ['light', 'dark']) {
    for (const wide of [1400, 360]) {
      const name = `golden, ${colorScheme}, ${wide} px`;
      const other = await open(browser, `file://${join(scratch, 'golden.html')}`, {
        colorScheme, viewport: { width: wide, height: 780 }, reducedMotion: 'reduce',
      });
      await frames(other.tab, 4);
      check(`${name}: nothing is wider than the screen`, await width(other.tab));
      check(`${name}: what is read can be read`, await contrast(other.tab));
      check(`${name}: what can be used has a name`, await named(other.tab));
      await quiet(name, other);
      await other.close();
    }
  }
};

const hostileRun = async (browser) => {
  const path = join(scratch, 'hostile.jsonl');
  const [, { wire, policy }] = entries(golden);
  const strings = hostile();
  const made = write(path, { setup: { wire, policy }, rounds: 330, next: strings.next });
  check('hostile: enough strings', strings.count() < 10000 && `${strings.count()}`);
  const opened = await open(browser, page(path, 'hostile'));
  const { tab } = opened;
  note(`hostile: ${strings.count()} strings in ${made.entries} entries, open in ${opened.opened.toFixed()} ms`);
  await layers('hostile', opened, path, 12);
  await marks('hostile', opened, path);

  // Requests, entries and layers of every kind.
  await tab.evaluate(async (last) => {
    const { undertext } = window;
    for (let id = 1; id <= last; id += id % 500 < 60 ? 1 : 17) {
      undertext.open(`#e${id}`);
      document.getElementById('card').close();
      if (id % 4 === 0) await new Promise(requestAnimationFrame);
    }
  }, made.entries);
  const rounds = made.asked.map(({ request }) => request);
  let nodes = 0;
  for (const id of [rounds[12], rounds[120], rounds.at(-1)]) {
    await tab.evaluate((id) => window.undertext.open(`#e${id}`), id);
    for (const list of ['messages', 'layers', 'rounds']) {
      nodes = Math.max(nodes, (await walk(tab, list)).nodes);
    }
    await tab.click('#lift-all');
    nodes = Math.max(nodes, (await walk(tab, 'messages')).nodes);
    await tab.click('#diff');
    await frames(tab);
    await tab.click('#diff');
    await tab.click('#lay-all');
  }
  for (const overlay of spread(made.overlays, 20)) {
    await tab.evaluate((id) => { window.undertext.lift(id, true); }, overlay);
    await frames(tab, 1);
    await tab.evaluate((id) => { window.undertext.lift(id, false); }, overlay);
  }
  for (const sought of ['<script>', 'onerror', '__proto__', '(?:', '\\', '\u202e', '</script>']) {
    await tab.fill('#search', sought);
    await tab.press('#search', 'Enter');
    await frames(tab, 4);
    await tab.press('#search', 'Enter');
    if (sought !== '\u202e') continue;
    // A hit may be in the settings or in a list: one of the first is in a message.
    let signs = 0;
    for (let hit = 0; hit < 20 && signs === 0; hit += 1) {
      await tab.press('#search', 'Enter');
      await frames(tab, 6);
      signs = await tab.evaluate(() =>
        [...document.querySelectorAll('#messages .sign')].filter((sign) => sign.dataset.sign.includes('U+202E')).length);
    }
    check('hostile: what turns a text round is to be seen', signs === 0 && 'no sign of U+202E');
  }
  await tab.press('#search', 'Escape');
  // Links that a transcript could hold.
  for (const link of ['#__proto__', '#<img src=x onerror=planted=1>', '#e99999999999999999999', '#%', '#e-1', '#1.', '#.1']) {
    await tab.evaluate((link) => { location.hash = link; }, link);
    await frames(tab, 2);
  }
  for (const key of ['j', 'k', '[', ']', '?', 'Escape', 'd', 't', 'c']) await tab.keyboard.press(key);
  const links = await tab.evaluate(() =>
    [...document.querySelectorAll('a[href], [src], form, iframe, object, embed, base')]
      .filter((element) => !(element.getAttribute('href') ?? '').startsWith('#'))
      .map((element) => element.outerHTML.slice(0, 100)));
  check('hostile: no link, image or frame is made of text', links);
  check('hostile: globals and prototypes are as they were', await tab.evaluate(() => {
    const own = (object) => Object.getOwnPropertyNames(object);
    const frame = Object.getOwnPropertyNames(Object.prototype);
    return [
      ...Object.keys(Object.prototype), ...Object.keys(Array.prototype), ...Object.keys(Function.prototype),
      ...own({}).map(String), ...(frame.length === 12 ? [] : [frame.join(' ')]),
    ];
  }));
  check('hostile: the page stays small', nodes > 6000 && `${nodes} nodes`);
  await quiet('hostile', opened);
  await opened.close();
};

const largeRun = async (browser) => {
  const path = join(scratch, 'large.jsonl');
  const [, { wire, policy }] = entries(golden);
  const made = write(path, { setup: { wire, policy }, rounds: 1560, next: plain().next, calm: true });
  const opened = await open(browser, page(path, 'large'));
  const { tab } = opened;
  const scrolled = await tab.evaluate(async () => {
    const start = performance.now();
    let steps = 0;
    let nodes = 0;
    for (const id of ['messages', 'rounds']) {
      const list = document.getElementById(id);
      list.scrollTop = 0;
      for (let part = 0; part <= 20; part += 1) {
        list.scrollTop = (list.scrollHeight * part) / 20;
        await new Promise(requestAnimationFrame);
        steps += 1;
        nodes = Math.max(nodes, document.getElementsByTagName('*').length);
      }
    }
    return { ms: (performance.now() - start) / steps, nodes };
  });
  note(`large: ${made.entries} entries, open in ${opened.opened.toFixed()} ms, ` +
    `${scrolled.ms.toFixed()} ms a step of scrolling, at most ${scrolled.nodes} nodes`);
  check('large: it is large', made.entries < 10000 && `${made.entries} entries`);
  check('large: the page stays small', scrolled.nodes > 8000 && `${scrolled.nodes} nodes`);
  await marks('large', opened, path);
  await quiet('large', opened);
  await opened.close();
};

const liveRun = async (browser) => {
  const transcripts = join(scratch, 'live');
  const demo = begin('demo', '--transcripts', transcripts);
  let server;
  try {
    const path = await appears(transcripts);
    server = begin('page', path, '--serve');
    const url = await server.line();
    const opened = await open(browser, url, { allowed: (asked) => asked.startsWith(url) });
    const { tab } = opened;
    const first = await tab.evaluate(() => window.undertext.requests().length);
    check('live: the demo ends well', (await demo.ended) !== 0 && 'it does not');
    const asked = entries(path).filter(({ type, round }) => type === 'request' && round).length;
    await tab.waitForFunction((asked) => window.undertext.requests().length === asked, asked, { timeout: 15000 })
      .catch(() => check('live: every request comes', 'some are missing'));
    await frames(tab, 4);
    note(`live: opened at ${first} of ${asked} requests`);
    check('live: the layers give what was sent', await tab.evaluate(() => window.undertext.check()));
    const last = entries(path).filter(({ type, round }) => type === 'request' && round).at(-1);
    const shown = await tab.evaluate(() => document.getElementById('which').textContent);
    check('live: the newest request is shown', !shown.startsWith(`Round ${last.round}`) && `${shown} for r${last.round}`);
    await quiet('live', opened);
    server.child.kill('SIGINT');
    check('live: Ctrl-C ends the server', (await server.ended) !== 130 && 'with another code');
    await tab.waitForFunction(() => /not live/.test(document.getElementById('status').textContent), null, { timeout: 15000 })
      .catch(() => check('live: the end of the server is told', 'it is not'));
    await opened.close();
  } finally {
    demo.child.kill();
    server?.child.kill();
  }
};

// The first transcript in a directory that has an entry.
const appears = async (directory) => {
  const { readdirSync } = await import('node:fs');
  for (let tries = 0; tries < 400; tries += 1) {
    try {
      const name = readdirSync(directory).find((name) => name.endsWith('.jsonl'));
      if (name && readFileSync(join(directory, name), 'utf8').includes('\n')) return join(directory, name);
    } catch { /* not there yet */ }
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error('the demo wrote no transcript');
};

const edges = (browser) => edgesRun(browser, { check, quiet, frames, width });
const parts = { golden: goldenRun, edges, hostile: hostileRun, large: largeRun, live: liveRun };
const wanted = process.argv.slice(2);
const browser = await launch();
try {
  for (const [name, part] of Object.entries(parts)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const start = performance.now();
    await part(browser);
    note(`${name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  }
} finally {
  await browser.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
