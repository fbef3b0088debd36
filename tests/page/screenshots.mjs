// Takes the pictures of docs/: the golden run in light, dark and narrow.

import { join } from 'node:path';

import { golden, launch, open, page, root } from './browser.mjs';

const shots = [
  ['light', { colorScheme: 'light', viewport: { width: 1400, height: 900 } }],
  ['dark', { colorScheme: 'dark', viewport: { width: 1400, height: 900 } }],
  ['narrow', { colorScheme: 'light', viewport: { width: 390, height: 844 } }],
];

const browser = await launch();
try {
  const address = page(golden, 'golden');
  for (const [name, options] of shots) {
    const { tab, told, close } = await open(browser, address, { reducedMotion: 'reduce', ...options });
    // A request with layers of three origins; in the dark one, one of them is lifted.
    await tab.evaluate(() => { window.undertext.open('#r11'); window.undertext.open('#9.6'); });
    if (name === 'dark') {
      const [first] = await tab.evaluate(() => window.undertext.overlays(window.undertext.requests().at(-1).id));
      await tab.evaluate((id) => window.undertext.lift(id, true), first);
    }
    await tab.waitForTimeout(300);
    const path = join(root, `docs/page-${name}.png`);
    await tab.screenshot({ path, animations: 'disabled' });
    console.log(path, told.join('; '));
    await close();
  }
} finally {
  await browser.close();
}
