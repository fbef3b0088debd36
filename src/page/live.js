// Follows a run that is still going on: asks the server of this page for what came since, and hands
// it to the page. What was shown stays when the server ends.
'use strict';
(() => {
  const page = window.undertext;
  // How long to wait after each failure in a row; after the last one nothing is asked any more.
  const pauses = [250, 500, 1000, 2000, 5000, 10000, 10000, 10000, 10000, 10000];
  // The page that came with this script holds the first piece.
  let next = 1;

  const wait = (ms) => new Promise((done) => setTimeout(done, ms));

  const ask = async () => {
    const address = `${location.pathname}more?from=${next}`;
    const options = { cache: 'no-store', credentials: 'omit', redirect: 'error' };
    const answer = await fetch(address, options);
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    return answer.json();
  };

  // Whether there may be more.
  const take = (told) => {
    next = told.next;
    for (const data of told.more) page.append(data);
    page.status(told.trouble ?? 'live', told.trouble !== undefined);
    return told.trouble === undefined;
  };

  const follow = async () => {
    let failures = 0;
    for (;;) {
      let told;
      try {
        told = await ask();
        failures = 0;
      } catch {
        const pause = pauses[failures];
        failures += 1;
        const text = 'not live: the server does not answer';
        page.status(pause === undefined ? `${text}; reload to try again` : text, true);
        if (pause === undefined) return;
        await wait(pause);
        continue;
      }
      if (!take(told)) return;
    }
  };

  page.status('live', false);
  follow();
})();
