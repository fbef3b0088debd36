// Runs and screens that are not as most are: imported, damaged, empty, cut short; a phone on its side,
// no script.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { golden, open, page, scratch, undertext } from './browser.mjs';

const text = (tab, id) => tab.evaluate((id) => document.getElementById(id).textContent, id);
const lines = () => readFileSync(golden, 'utf8').split('\n').filter(Boolean);

// A transcript of some lines, and the page of it, which says by its exit that one is damaged.
const made = (name, kept) => {
  const path = join(scratch, `${name}.jsonl`);
  writeFileSync(path, kept.map((json) => `${json}\n`).join(''));
  const out = join(scratch, `${name}.html`);
  try {
    undertext('page', path, '--out', out);
  } catch (error) {
    if (error.status !== 6) throw error;
  }
  return `file://${out}`;
};

// Another agent's recording: what is told of who made it, and no word that we sent it.
const imported = async (browser, { check, quiet }) => {
  const common = { cwd: '/w', version: '2.0.1', sessionId: 's', timestamp: '2026-01-01T00:00:00Z' };
  const usage = { input_tokens: 90, cache_read_input_tokens: 900, output_tokens: 5 };
  const records = [
    { type: 'user', uuid: 'u1', parentUuid: null, message: { role: 'user', content: 'Fix it.' } },
    {
      type: 'assistant', uuid: 'a1', parentUuid: 'u1',
      message: { id: 'm1', role: 'assistant', model: 'claude', content: [{ type: 'text', text: 'Fixed.' }], usage },
    },
  ];
  const path = join(scratch, 'recorded.jsonl');
  writeFileSync(path, records.map((record) => `${JSON.stringify({ ...common, ...record })}\n`).join(''));
  const told = JSON.parse(undertext('import', path, '--transcripts', join(scratch, 'imported'), '--json').split('\n')[0]);
  const opened = await open(browser, page(told.transcript, 'imported'));
  const { tab } = opened;
  const source = await text(tab, 'source');
  check('imported: who recorded it is told', !source.startsWith('Recorded by claude-code 2.0.1; its requests are rebuilt') && source);
  const which = await text(tab, 'which');
  check('imported: a request is said to be rebuilt', !which.endsWith('rebuilt') && which);
  const size = await text(tab, 'readout');
  check('imported: the size is the one that was counted', !size.includes('sent 990') && size);
  await quiet('imported', opened);
  await opened.close();
};

// A result that is not there: what cannot be known is said, and no figure made up.
const damaged = async (browser, { check, quiet }) => {
  const lost = lines().map((json) => JSON.parse(json)).find(({ type, call }) => type === 'result' && call === '18.1');
  const opened = await open(browser, made('damaged', lines().filter((json) => JSON.parse(json).id !== lost.id)));
  const { tab } = opened;
  const alarm = await text(tab, 'alarm');
  check('damaged: the result that is missing is named', !alarm.includes('The result of 18.1 is missing where r4 was asked') && alarm);
  await tab.evaluate(() => window.undertext.open('#r6'));
  const size = await text(tab, 'readout');
  check('damaged: no size is made up', !size.includes('not known') && size);
  await quiet('damaged', opened);
  await opened.close();
};

// What was laid after the last request is marked behind it.
const after = async (browser, { check, quiet }) => {
  const all = lines();
  const end = all.findLastIndex((json) => JSON.parse(json).type === 'overlay');
  const opened = await open(browser, made('after', all.slice(0, end + 1)));
  const { tab } = opened;
  const places = await tab.evaluate(() => {
    const x = (element) => element.getBoundingClientRect().left;
    const marks = [...document.querySelectorAll('[data-mark]')];
    return [x(marks.at(-1)), marks.at(-1).textContent, document.querySelector('.sent-line').getBoundingClientRect().right];
  });
  check('after: an overlay after the last request is marked behind it', [
    places[0] < places[2] && `${places}`,
    !places[1].endsWith('after the last request') && places[1],
  ]);
  // The newest request, from wherever one is.
  await tab.keyboard.press('g');
  await tab.keyboard.press('G');
  const hash = await tab.evaluate(() => location.hash);
  const last = all.slice(0, end).map((json) => JSON.parse(json)).findLast(({ type }) => type === 'request');
  check('after: G goes to the newest request', hash !== `#e${last.id}` && hash);
  // It asks for a summary, to which layers do not lie.
  const apart = await tab.evaluate(() => [
    document.getElementById('apart').hidden && 'it is not said',
    document.querySelector('[data-overlay]').disabled ? null : 'a layer can be lifted',
  ]);
  check('after: nothing can be lifted from what asks for a summary', apart);
  await quiet('after', opened);
  await opened.close();
};

const nowhere = async (browser, { check, quiet, frames }) => {
  const opened = await open(browser, page(golden, 'nowhere'));
  const { tab } = opened;
  for (const [link, told] of [
    ['#e99999', '#e99999 leads nowhere. This run has'],
    ['#elsewhere', '#elsewhere is no address'],
    ['#e5', ''],
  ]) {
    await tab.evaluate((link) => { location.hash = link; }, link);
    await frames(tab, 3);
    const word = await text(tab, 'word');
    check(`nowhere: ${link} says whether it leads anywhere`, (told === '' ? word !== '' : !word.startsWith(told)) && word);
  }
  // Layers that lie beneath another are told.
  await tab.evaluate(() => window.undertext.open('#r15'));
  const idle = await tab.evaluate(() => [...document.querySelectorAll('.idle')].map((line) => line.textContent));
  check('nowhere: a layer beneath another is said to be', (idle.length !== 2 || !idle.every((line) => line.endsWith('lies beneath e57.'))) && idle);
  await quiet('nowhere', opened);
  await opened.close();
};

const empty = async (browser, { check, quiet }) => {
  const path = join(scratch, 'empty.jsonl');
  writeFileSync(path, `${lines()[0]}\n`);
  const told = undertext('page', path, '--out', join(scratch, 'empty.html'));
  check('empty: one entry is one', !told.includes(': 1 entry,') && told);
  const opened = await open(browser, `file://${join(scratch, 'empty.html')}`);
  const readout = await text(opened.tab, 'readout');
  check('empty: a run without requests says so', readout !== 'No request was made.' && readout);
  await quiet('empty', opened);
  await opened.close();
};

const screens = async (browser, { check, quiet, width }) => {
  const address = page(golden, 'screens');
  for (const [name, size] of [['on its side', { width: 844, height: 390 }], ['upright', { width: 390, height: 844 }]]) {
    const opened = await open(browser, address, { viewport: size, hasTouch: true });
    const { tab } = opened;
    check(`a phone ${name}: nothing is wider than the screen`, await width(tab));
    const boxes = await tab.evaluate(() => ['messages', 'legend', 'tabs'].map((id) => document.getElementById(id).getBoundingClientRect().toJSON()));
    check(`a phone ${name}: there is room to read`, boxes[0].height < 250 && `${boxes[0].height} px`);
    check(`a phone ${name}: colours are told, parts can be chosen`, boxes.slice(1).map((box) =>
      (box.height < 10 || box.bottom > size.height) && JSON.stringify(box)));
    await quiet(`a phone ${name}`, opened);
    await opened.close();
  }
  const context = await browser.newContext({ javaScriptEnabled: false });
  const tab = await context.newPage();
  await tab.goto(address);
  const advice = tab.locator('body > noscript p');
  check('without scripts: a command is named', [
    !(await advice.isVisible()) && 'nothing is seen',
    !(await advice.textContent()).includes('undertext print') && 'it is not',
  ]);
  await context.close();
};

export const edgesRun = async (browser, tools) => {
  for (const part of [imported, damaged, after, nowhere, empty, screens]) await part(browser, tools);
};
