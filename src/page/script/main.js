// What is chosen, and how the reader gets there.

const state = {
  // The request that is looked at; `null` is what reads after the last entry.
  at: null,
  lifted: new Set(),
  overlay: null,
  diff: false,
  // Whether the reader moved the messages since the request was chosen.
  scrolled: false,
};

const isPhone = () => matchMedia("(max-width: 800px), (max-height: 480px)").matches;

// Looks at a request.
function choose(line, { hash = true, scroll = true } = {}) {
  state.at = line ?? null;
  state.scrolled = false;
  panel.draw({ keep: false });
  if (scroll) panel.toNew();
  drawer.draw({ keep: false });
  chart.select();
  timeline.select();
  timeline.rows.show(line ? line.id : END, { top: false });
  if (hash) place(line ? (line.round === undefined || line.purpose !== "round" ? `e${line.id}` : `r${line.round}`) : "end");
}

// Says something for a while.
function say(text) {
  const word = byId("word");
  fill(word, text);
  word.hidden = text === "";
  clearTimeout(say.until);
  if (text !== "") say.until = setTimeout(() => say(""), 9000);
}

function place(hash) {
  try {
    history.replaceState(null, "", `#${hash}`);
  } catch {
    // A page that is kept in an odd place may not change its address; it works all the same.
  }
}

function tab(name) {
  document.querySelector("main").dataset.tab = name;
  for (const button of byId("tabs").children) button.setAttribute("aria-selected", String(button.dataset.tab === name));
  panel.rows.draw();
  drawer.rows.draw();
  timeline.rows.draw();
}

// Lifts a layer, or lays it back, and looks at what that changed.
function toggle(id, on = !state.lifted.has(id)) {
  if (on) state.lifted.add(id);
  else state.lifted.delete(id);
  state.overlay = id;
  redraw();
  look(run.byOverlay.get(id), { move: false });
}

function layAll() {
  state.lifted.clear();
  redraw();
}

function liftAll() {
  const at = state.at ? state.at.id : END;
  for (const overlay of drawer.laid()) if (standing(at, state.lifted)(overlay)) state.lifted.add(overlay.id);
  redraw();
}

function redraw() {
  panel.draw();
  drawer.draw();
}

// Shows where an overlay lies.
function look(overlay, { move = true } = {}) {
  if (!overlay) return;
  const of = (row) => row.overlay === overlay || row.seam === overlay || Object.values(row.by ?? {}).includes(overlay.id) || panel.ghosts(row).includes(overlay);
  const row = panel.rows.rows.find((row) => !row.head && of(row));
  if (!row) return;
  if (move && isPhone()) tab("request");
  flash(panel.rows.show(row.of, { top: false }));
}

function flash(element) {
  if (!element) return;
  element.classList.remove("flash");
  void element.offsetWidth;
  element.classList.add("flash");
}

// Goes to an entry: to the first request that reads it, to an overlay's first request, or to a card.
function goEntry(id, of = null, inFull = false) {
  const line = run.byEntry.get(id);
  if (!line) return false;
  const item = run.byItem.get(line.type === "result" ? parts(line.call)[0] : id);
  if (line.type === "request") {
    choose(line);
  } else if (line.type === "overlay" || line.type === "retract") {
    const next = list.rounds[firstAt(list.rounds, id)] ?? null;
    if (state.at !== next) choose(next, { hash: false });
    state.overlay = line.type === "overlay" ? id : line.overlays[0];
    drawer.draw();
    flash(drawer.rows.show(state.overlay));
    look(run.byOverlay.get(state.overlay), { move: false });
    place(`e${id}`);
  } else if (item && (line.type === "user" || line.type === "response" || line.type === "result")) {
    if (isPhone()) tab("request");
    goItem(line, of ?? (line.type === "result" ? line.call : `e${id}`), inFull);
  } else {
    card(line);
  }
  return true;
}

function goItem(line, of, inFull) {
  const row = panel.rows.rows.find((row) => row.of === of);
  const covered = row && inFull && row.text !== undefined && !row.exact;
  if (!row || covered) {
    state.diff = false;
    choose(list.rounds[firstAt(list.rounds, line.id)] ?? null, { hash: false, scroll: false });
  }
  const shown = panel.rows.show(of) ?? panel.rows.show(covering(line));
  flash(shown);
  place(line.type === "result" ? line.call : `e${line.id}`);
  if (!shown) say(`e${line.id} is read by no request: it says nothing, or it came after the last one.`);
}

// The message or the seam in which an entry that has no message of its own reads.
function covering(line) {
  const item = run.byItem.get(line.type === "result" ? parts(line.call)[0] : line.id);
  return panel.rows.rows.find((row) => row.items?.includes(item) || row.calls?.some?.((call) => call.id === line.call))?.of;
}

// What there is to say of an entry that is no message.
function card(line) {
  const box = byId("card");
  const row = (name, value) => (value === undefined || value === "" ? null : [make("dt", {}, name), make("dd", {}, value)]);
  const text = (number) => (number === undefined || run.chars(number) === 0 ? null : make("pre", { class: "text" }, run.text(number)));
  const facts = {
    setup: () => [row("model", run.text(line.model)), row("profile", run.text(line.profile)), row("window", line.window && count(line.window)), row("trigger", line.trigger && count(line.trigger)), row("tools", line.tools.map((tool) => run.text(tool.name)).join(", "))],
    run: () => [row("run", line.run), row("workspace", run.text(line.workspace)), row("written by", run.text(line.generator)), line.imported && row("imported from", run.text(line.imported.file)), line.imported?.skipped && row("left out", `${many(line.imported.skipped, "line")} of it could not be read`), row("forked from", line.parent && `${line.parent.run} at e${line.parent.entry}`), line.batch && [row("a task of", run.text(line.batch.file)), line.batch.id !== undefined && row("its id", run.text(line.batch.id)), line.batch.name !== undefined && row("batch", run.text(line.batch.name))]],
    fault: () => [row("class", line.class), row("status", line.status), row("attempt", line.attempt), row("request", `e${line.request}`)],
    pin: () => row("entry", `e${line.entry}`),
    unpin: () => row("entry", `e${line.entry}`),
    started: () => row("call", line.call),
    note: () => row("kind", line.kind),
    end: () => row("reason", line.reason),
  };
  const told = Object.hasOwn(facts, line.type) ? facts[line.type]() : null;
  fill(box,
    make("header", {}, make("h2", {}, `e${line.id} ${line.type}`), make("button", { class: "quiet", click: () => box.close() }, "Close")),
    make("dl", {}, row("time", moment(line.at)), told),
    text(line.instructions ?? line.message ?? line.json ?? (line.type === "response" || line.type === "note" || line.type === "end" ? line.text : line.content)));
  if (!box.open) box.showModal();
  place(`e${line.id}`);
  search.light();
}

function help() {
  const keys = [["j / k", "next request, request before"], ["] / [", "next layer, layer before"], ["l", "lift that layer, or lay it back"], ["9 / 0", "lift all, lay all back"], ["d", "what changed since the request before"], ["/", "search; then n and N"], ["g / G", "first request, newest"], ["c", "copy a link to this place"], ["t", "light or dark"], ["?", "this"]];
  const box = byId("card");
  fill(box,
    make("header", {}, make("h2", {}, "How to read this"), make("button", { class: "quiet", click: () => box.close() }, "Close")),
    make("p", {}, `Every request of the run is here as it was ${run.facts?.imported ? "rebuilt from what was recorded" : "sent"}. Where something reads differently from what is recorded, a layer lies on it: lift the layer, and what is beneath shows. Nothing is ever lost.`),
    make("dl", { class: "keys" }, keys.map(([key, text]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, text)])),
    make("p", { class: "faint" }, "Addresses work as links: #r12 a round, #e57 an entry, #41.2 a call."));
  if (!box.open) box.showModal();
}

// Goes where a link points.
function goHash(hash) {
  const text = hash.replace(/^#/, "");
  let found;
  if ((found = /^r(\d{1,9})$/.exec(text))) {
    const line = list.rounds.find((line) => line.round === Number(found[1]));
    if (line) choose(line);
    return Boolean(line);
  }
  if ((found = /^t(\d{1,9})$/.exec(text))) return run.turns[found[1] - 1] ? goEntry(run.turns[found[1] - 1].id) : false;
  if ((found = /^e(\d{1,15})$/.exec(text))) return goEntry(Number(found[1]));
  if (/^\d{1,15}\.\d{1,9}$/.test(text)) {
    const call = run.call(text);
    if (!call) return false;
    return goEntry(call.result ? call.result.id : parts(text)[0], call.result ? text : null);
  }
  if (text === "end") choose(null);
  return text === "end";
}

// Goes where a link points, or says that it leads nowhere.
function follow(hash) {
  say("");
  if (hash.length < 2 || hash === "#messages" || goHash(hash)) return;
  const name = hash.length > 40 ? `${hash.slice(0, 40)}…` : hash;
  const known = /^#(e\d+|r\d+|t\d+|\d+\.\d+)$/.test(hash);
  const has = `This run has ${many(run.last, "entry", "entries")}, ${many(run.rounds, "round")} and ${many(run.turns.length, "turn")}.`;
  say(known ? `${name} leads nowhere. ${has}` : `${name} is no address: #r12 is a round, #e57 an entry, #41.2 a call, #t2 a turn.`);
}

function step(by) {
  const all = run.requests;
  const now = state.at ? state.at.place : all.length;
  const next = Math.max(0, Math.min(all.length, now + by));
  choose(all[next] ?? null);
}

function stepLayer(by) {
  const laid = drawer.laid().reverse();
  if (laid.length === 0) return;
  const now = laid.findIndex((overlay) => overlay.id === state.overlay);
  const next = now < 0 ? (by > 0 ? 0 : laid.length - 1) : Math.max(0, Math.min(laid.length - 1, now + by));
  state.overlay = laid[next].id;
  drawer.rows.anew();
  flash(drawer.rows.show(state.overlay, { top: false }));
  look(laid[next], { move: false });
}

function theme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("undertext-theme", root.dataset.theme);
  } catch {
    // Kept for this visit alone.
  }
}

async function copy() {
  const button = byId("copy");
  try {
    await navigator.clipboard.writeText(location.href);
    fill(button, "Copied");
  } catch {
    fill(button, "In the address bar");
  }
  setTimeout(() => fill(button, "Link"), 1600);
}

function setDiff(on) {
  if (state.at && state.at.purpose !== "round") return;
  state.diff = on;
  panel.draw({ keep: false });
  panel.toNew();
}

const KEYS = new Map(Object.entries({
  j: () => step(1),
  k: () => step(-1),
  g: () => choose(run.requests[0] ?? null),
  G: () => choose(run.requests[run.requests.length - 1] ?? null),
  "]": () => stepLayer(1),
  "[": () => stepLayer(-1),
  l: () => state.overlay !== null && drawer.laid().some((overlay) => overlay.id === state.overlay) && toggle(state.overlay),
  9: () => liftAll(),
  0: () => layAll(),
  d: () => setDiff(!state.diff),
  n: () => search.go(1),
  N: () => search.go(-1),
  c: () => copy(),
  t: () => theme(),
  "/": () => byId("search").focus(),
  "?": () => help(),
}));

function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === byId("search");
    if (typing) {
      if (event.key === "Enter") search.go(event.shiftKey ? -1 : 1);
      else if (event.key === "Escape") byId("search").blur();
      return;
    }
    if (byId("card").open && event.key !== "?") return;
    const act = KEYS.get(event.key);
    if (!act) return;
    event.preventDefault();
    act();
  });
  const on = (id, act) => byId(id).addEventListener("click", act);
  on("back", () => step(-1));
  on("forth", () => step(1));
  on("diff", () => setDiff(!state.diff));
  on("lay-all", layAll);
  on("lift-all", liftAll);
  on("theme", theme);
  on("help", help);
  on("copy", copy);
  on("found-next", () => search.go(1));
  on("found-back", () => search.go(-1));
  let typed = 0;
  byId("search").addEventListener("input", (event) => {
    clearTimeout(typed);
    typed = setTimeout(() => search.start(event.target.value), 120);
  });
  for (const button of byId("tabs").children) button.addEventListener("click", () => tab(button.dataset.tab));
  byId("rounds").addEventListener("click", () => isPhone() && tab("request"));
  for (const moved of ["wheel", "touchmove", "keydown", "pointerdown"]) {
    byId("messages").addEventListener(moved, () => (state.scrolled = true), { passive: true });
  }
  addEventListener("hashchange", () => follow(location.hash));
  // A link to where one already is leads there again.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.handle");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (byId("card").open) byId("card").close();
    follow(link.getAttribute("href"));
  });
  byId("card").addEventListener("click", (event) => event.target === byId("card") && byId("card").close());
  new ResizeObserver(() => chart.draw()).observe(byId("plot"));
}

// The run at a glance.
function totals() {
  const used = run.used;
  const facts = run.facts;
  fill(byId("name"), facts ? (facts.name === undefined ? `run ${facts.short}` : firstLine(run.text(facts.name), 80)) : "a run");
  document.title = `${facts ? `run ${facts.short}` : "run"} · undertext`;
  const first = run.turns[0];
  fill(byId("task"), first ? firstLine(run.text(first.text), 260) : "");
  const item = (name, value, hint) => make("div", { title: hint }, make("dt", {}, name), make("dd", {}, value));
  const laid = ORIGINS.map((origin) => [origin, run.overlays.filter((overlay) => overlay.line.origin === origin).length]).filter(([, times]) => times > 0);
  const newestSetup = run.setups[run.setups.length - 1];
  const from = run.entries[0]?.at ?? 0;
  const until = run.entries[run.entries.length - 1]?.at ?? 0;
  fill(byId("totals"),
    item("model", newestSetup ? firstLine(run.text(newestSetup.model), 40) : "unknown"),
    item("began", moment(from), `${span(Math.max(0, until - from))} from the first entry to the last`),
    item("rounds", count(run.rounds)),
    item("calls", count(run.calls)),
    item("tokens in", count(used.input), "tokens read, over all requests"),
    item("cached", used.input > 0 ? `${Math.round((100 * used.cached) / used.input)} %` : "none"),
    item("out", count(used.output)),
    used.cost === null ? null : item("cost", money(used.cost)),
    item("layers", laid.length === 0 ? "none" : laid.map(([origin, times]) => make("span", { class: "origin-count" }, badge(origin), `${count(times)} ${origin}`))),
    item("end", !run.end && run.isRebuilt(run.requests[run.requests.length - 1]) ? "not recorded" : run.end ? (run.entries.some((entry) => entry.id > run.end.id && ["user", "request", "response"].includes(entry.type)) ? "taken up again" : run.end.reason.replace("_", " ")) : "open"));
  const imported = facts?.imported;
  const source = byId("source");
  source.hidden = !imported;
  if (!imported) return;
  const requests = `${facts.parent ? `its requests up to e${facts.parent.entry}` : "its requests"} are rebuilt from what it wrote down`;
  fill(source, "Recorded by ", make("b", {}, firstLine(run.text(imported.by), 60)), `; ${requests}, which may leave out instructions and tools.`);
}

// Says what is wrong, if something is.
function alarm() {
  const unproved = list.rounds.filter((request) => request.unproved);
  const named = unproved.slice(0, 8).map((request) => `r${request.round}`).join(", ");
  const wrong = [...run.damage.map((text) => `The transcript is damaged: ${text}`), ...(unproved.length === 0 ? [] : [`${count(unproved.length)} of ${count(list.rounds.length)} requests cannot be built again as they were sent, and read here as they would be now: ${named}${unproved.length > 8 ? ", …" : ""}`]), ...differences.map((text) => `This page computes a request other than it was sent: ${text}`)];
  // What cannot be measured: a call that was answered, since the model was asked again, and whose result
  // the transcript does not hold.
  const first = list.rounds.find((request) => request.kept === undefined);
  if (first) {
    const lost = run.items.filter((item) => item.id < first.id).flatMap((item) => item.calls ?? []).filter((call) => !call.result || call.result.id > first.id);
    const names = lost.slice(0, 4).map((call) => call.id).join(", ");
    wrong.push(`The result of ${names}${lost.length > 4 ? ", …" : ""} is missing where r${first.round} was asked: from there on, what everything in full would take is not known.`);
  }
  const box = byId("alarm");
  box.hidden = wrong.length === 0;
  fill(box, wrong.slice(0, 5).map((text) => make("p", {}, text)), wrong.length > 5 ? make("p", {}, `and ${count(wrong.length - 5)} more`) : null);
}

const differences = [];
let checked = 0;

// Holds every request that was not held against the algebra yet; all of them at once, or while
// nothing else is to do.
function check({ all = true } = {}) {
  const until = performance.now() + 10;
  const known = differences.length;
  while (checked < list.rounds.length && (all || performance.now() < until)) {
    const wrong = difference(list.rounds[checked]);
    checked += 1;
    if (wrong) differences.push(wrong);
  }
  if (differences.length > known) alarm();
  if (checked < list.rounds.length) setTimeout(() => check({ all: false }), 30);
  return differences.slice();
}

// Takes in what came since; follows the newest request unless the reader went elsewhere.
function append(more) {
  const newest = list.rounds[list.rounds.length - 1] ?? null;
  const followed = !state.scrolled && (state.at === null || state.at === newest);
  if (!run.take(more)) return false;
  totals();
  alarm();
  chart.draw();
  timeline.draw();
  if (followed) choose(state.at === null && newest ? null : list.rounds[list.rounds.length - 1] ?? null, { hash: false });
  else if (state.at === null || state.at === newest) redraw();
  if (search.query !== "") search.start(search.query, search.at);
  check({ all: false });
  return true;
}

function status(text, isBad = false) {
  const line = byId("status");
  line.hidden = text === "";
  line.classList.toggle("bad", Boolean(isBad));
  fill(line, text);
}

// A message in plain words, for whoever tests this page.
function told(row) {
  if (row.understood) return { of: row.of, role: "assistant", text: "Understood. I have the context from the summary. Continuing.", reasoning: [], calls: [] };
  if (row.role === "t") return { of: row.of, role: "tool", text: row.open ? INTERRUPTED : run.text(row.text ?? row.call.result.content), reasoning: [], calls: [] };
  if (row.role === "a") {
    const calls = row.shown.map(({ call, place }) => ({ id: call.id, name: run.text(call.call.name), arguments: row.emptied.includes(place) || !isObject(run.text(call.call.arguments)) ? "{}" : run.text(call.call.arguments) }));
    return { of: row.of, role: "assistant", text: run.text(row.line.text), reasoning: (row.thoughts ?? []).map((block) => run.text(block.text)), calls };
  }
  if (row.text !== undefined) return { of: row.of, role: "user", text: run.text(row.text), reasoning: [], calls: [] };
  const parts = (row.item.line.attachments ?? []).map((it, index) => run.text(row.without.includes(index + 1) ? it.hidden : it.reads));
  return { of: row.of, role: "user", text: [run.text(row.item.line.text), ...parts].join("\n\n"), reasoning: [], calls: [] };
}

function begin() {
  try {
    const kept = localStorage.getItem("undertext-theme");
    if (kept === "dark" || kept === "light") document.documentElement.dataset.theme = kept;
  } catch {
    // Nothing is kept here.
  }
  run.take(JSON.parse(byId("data").textContent));
  byId("data").remove();
  panel.start();
  drawer.start();
  timeline.start();
  totals();
  alarm();
  listen();
  timeline.draw({ keep: false });
  chart.draw();
  if (!goHash(location.hash)) {
    choose(list.rounds[list.rounds.length - 1] ?? null, { hash: false });
    follow(location.hash);
  }
  setTimeout(() => check({ all: false }), 200);
}

globalThis.undertext = Object.freeze({
  append,
  status,
  check: () => check(),
  requests: () => list.rounds.map(({ id, round }) => ({ id, round })),
  messages: (request, lifted = []) => reading(request, new Set(lifted)).filter((row) => !row.seam).map(told),
  idle: (request) => run.overlays.filter(standing(request, new Set())).filter((overlay) => idle(overlay, request) !== null).map((overlay) => overlay.id),
  overlays: (request) => run.overlays.filter(standing(request, new Set())).map((overlay) => overlay.id),
  open: (hash) => goHash(hash),
  lift: (id, on) => toggle(id, on),
});

begin();
