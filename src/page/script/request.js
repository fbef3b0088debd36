// The messages of a request as they read, sheet by sheet: what an overlay changed lies on top of what
// it covers, and can be lifted.

const WHO = { u: "user", a: "assistant", t: "result" };
const SHOWN = 24_000;

const panel = {
  rows: null,
  open: new Set(),

  start() {
    this.rows = new Rows(byId("messages"), {
      make: (row, place) => this.element(row, this.rows.rows[place - 1]),
      guess: (row) => this.guess(row),
      key: (row) => row.of,
      label: "Messages",
    });
    this.rows.drawn = () => search.light();
  },

  // The messages of what is chosen, with what stands before and behind them.
  read() {
    const at = state.at;
    const head = { of: "head", head: run.setup(at ? at.id : END) };
    let rows;
    if (at && at.purpose !== "round") rows = list.of(at).map((piece, place) => sent(piece, place));
    else {
      rows = reading(at ? at.id : END, state.lifted);
      if (state.diff) rows = changes(this.before(at), rows);
    }
    const tail = at ? [{ of: "reply", reply: at.response, at }] : [];
    return [head, ...rows, ...tail];
  },

  before(at) {
    const place = at ? at.at - 1 : list.rounds.length - 1;
    return place < 0 ? [] : reading(list.rounds[place].id, state.lifted);
  },

  draw({ keep = true } = {}) {
    this.rows.set(this.read(), { keep });
    this.bar();
  },

  // Looks at what is new in the request.
  toNew() {
    const at = state.at;
    const changed = state.diff && this.rows.rows.find((row) => row.change);
    if (changed) return void this.rows.show(changed.of);
    let left = at ? at.keep ?? 0 : list.newest?.length ?? 0;
    if (at && at.purpose !== "round") left = 0;
    const row = this.rows.rows.find((row) => !row.head && !row.seam && !row.skip && left-- === 0);
    if (row && row.of !== "reply") this.rows.show(row.of);
    else this.rows.scroller.scrollTop = this.rows.scroller.scrollHeight;
  },

  bar() {
    const at = state.at;
    const purpose = { summary: "Summary asked", combine: "Summaries combined", repair: "Correction asked" };
    const name = !at ? (run.end ? "After the end" : "Now") : at.purpose === "round" ? `Round ${at.round ?? "?"}` : purpose[at.purpose];
    const rebuilt = run.isRebuilt(at) && make("span", { class: "tag soft", title: "Another agent sent it: it is built anew from what that one recorded" }, "rebuilt");
    fill(byId("which"), name, at ? make("a", { class: "handle", href: `#e${at.id}` }, `e${at.id}`) : null, rebuilt);
    const messages = this.rows.rows.reduce((sum, row) => sum + (row.skip ?? (row.role && row.change !== "gone" ? 1 : 0)), 0);
    const notice = byId("lifted");
    const lifted = [...state.lifted].filter((id) => standing(at ? at.id : END, new Set())({ ...run.byOverlay.get(id) }));
    notice.hidden = lifted.length === 0 || Boolean(at && at.purpose !== "round");
    // What was sent is told of what was sent, whatever is lifted.
    const facts = [many(at ? list.of(at).length : messages, "message")];
    if (at) {
      const [word, size] = sentSize(at);
      facts.push(`${size} tokens ${word}`, `${count(at.bytes)} bytes`);
      if (run.setup(at.id)?.merges) facts.push("neighbours are sent as one");
    } else facts.push(notice.hidden ? "not sent yet" : "with layers lifted");
    fill(byId("facts"), facts.join(" · "));
    byId("diff").setAttribute("aria-checked", String(state.diff));
    byId("diff").disabled = Boolean(at && at.purpose !== "round");
    if (!notice.hidden) {
      fill(notice, make("span", {}, make("b", {}, `${many(lifted.length, "layer")} lifted.`), ` What lies beneath: ${many(messages, "message")}${at ? ", not what was sent" : ""}.`),
        make("button", { click: () => layAll() }, "Lay back"));
    }
  },

  guess(row) {
    if (row.head || row.seam || row.skip) return 44;
    const text = row.text ?? (row.role === "t" ? row.call?.result?.content : row.item?.line.text);
    const chars = text === undefined ? 80 : Math.min(run.chars(text), 1200);
    return 64 + Math.ceil(chars / 90) * 18 + (row.shown?.length ?? 0) * 56;
  },

  element(row, before) {
    const element = this.make(row, before);
    element.setAttribute("role", "listitem");
    if (row.change) element.classList.add(row.change);
    return element;
  },

  make(row, before) {
    if (row.head !== undefined) return this.head(row.head);
    if (row.of === "reply") return this.reply(row);
    if (row.skip) return this.skip(row);
    if (row.seam) return this.seam(row);
    const by = row.overlay ?? row.carries;
    const kind = row.overlay?.line.kind === "summary" || row.carries ? "summary" : row.overlay ? "stubbed" : "";
    const ghosts = this.ghosts(row);
    const sheet = make("article", { class: `sheet by-${WHO[row.role]} ${kind} ${by ? by.line.origin : ""}`, "data-message": row.of });
    if (ghosts.length > 0) sheet.classList.add("bare", ghosts[ghosts.length - 1].line.origin);
    // What covers many messages is named on the first of them.
    const named = before ? this.ghosts(before) : [];
    const told = ghosts.filter((overlay) => overlay.line.kind === "stub" || !named.includes(overlay));
    add(sheet, [this.top(row), told.map((overlay) => this.ghost(overlay, row)), this.body(row)]);
    return sheet;
  },

  // The lifted overlays that lay on a message.
  ghosts(row) {
    if (state.lifted.size === 0 || !row.item) return [];
    const at = state.at ? state.at.id : END;
    const lay = standing(at, new Set());
    const layers = row.role === "t" ? row.call.layers.filter((layer) => layer.kind === "result" || layer.kind === "hide") : [];
    const replies = row.role === "a" ? row.item.calls.flatMap((call) => call.layers.filter((layer) => layer.kind === "arguments" || layer.kind === "hide")) : [];
    const covers = [row.item.covers, row.item.hidden ?? [], row.role === "a" ? row.item.reasoning : [], row.role === "u" ? (row.item.attachments ?? []).flat() : []];
    const all = [...covers.flat(), ...[...layers, ...replies].map((layer) => layer.overlay)];
    return [...new Set(all)].filter((overlay) => state.lifted.has(overlay.id) && lay(overlay)).sort((one, other) => one.id - other.id);
  },

  ghost(overlay, row) {
    const { kind, origin } = overlay.line;
    const layer = row.role === "t" ? row.call.layers.find((layer) => layer.overlay === overlay && layer.kind === "result") : null;
    const text = layer ? make("s", {}, run.text(layer.text)) : { summary: "lifted: a summary stands here and for what follows", hide: "lifted: this is left out" }[kind] ?? "lifted";
    return make("p", { class: `ghost ${origin}` }, badge(origin), make("a", { class: "handle", href: `#e${overlay.id}` }, `e${overlay.id}`),
      make("span", {}, text), make("button", { class: "quiet", click: () => toggle(overlay.id) }, "Lay back"));
  },

  top(row) {
    const id = row.of === "k" ? null : row.overlay?.line.kind === "summary" || row.carries ? (row.overlay ?? row.carries).id : row.role === "t" ? row.of : row.of.slice(1);
    const handle = id === null || row.of.startsWith("a") ? null : make("a", { class: "handle", href: row.role === "t" ? `#${id}` : `#e${id}` }, row.role === "t" ? id : `e${id}`);
    let who = WHO[row.role];
    const facts = [];
    if (row.role === "t") {
      who = `result of ${row.call ? firstLine(run.text(row.call.call.name), 40) : "a call"}`;
      const result = row.call?.result;
      if (result && result.status !== "ok") facts.push(make("span", { class: "bad" }, result.status));
      if (result) facts.push(make("a", { class: "handle", href: `#${row.of}`, title: `The result is entry ${result.id}` }, `e${result.id}`));
      if (row.call) facts.push(label(row.call.call));
      if (result?.clipped !== undefined) facts.push(`clipped from ${count(result.clipped)} bytes`);
    } else if (row.overlay) who = "summary";
    else if (row.carries) who = "carried over";
    else if (row.understood) facts.push("said by the program");
    else if (row.role === "u" && row.item) who = { task: "user", follow_up: "user", hook: "hook", runtime: "runtime" }[row.item.line.origin] ?? "user";
    else if (row.asked) who = "the program asks";
    if (row.item?.line.round !== undefined && row.role === "a") facts.push(`round ${row.item.line.round}`);
    if (row.correction) facts.push(`corrected by e${row.correction}`);
    const tag = row.change && row.change !== "same" ? make("span", { class: `tag ${row.change}` }, row.change) : null;
    return make("header", {}, handle, make("b", { class: "who" }, who), facts.map((fact) => (fact instanceof Node ? fact : fact ? make("span", { class: "fact" }, fact) : null)), tag);
  },

  body(row) {
    if (row.understood) return this.text(row.of, row.word ?? "Understood. I have the context from the summary. Continuing.");
    if (row.exact) return this.exact(row);
    if (row.carries) return [this.text(row.of, run.text(row.text), "prose"), this.foot(row.carries, "shown again beside it")];
    if (row.overlay?.line.kind === "summary") {
      return [this.text(row.of, run.text(row.text), "prose"), this.foot(row.overlay, `in the place of ${this.named(row.items)}, e${row.items[0].id} to e${row.items[row.items.length - 1].id}`)];
    }
    if (row.role === "t") return this.result(row);
    if (row.role === "u") return this.user(row);
    return this.reads(row);
  },

  result(row) {
    if (row.open) {
      // A request is only made when all calls before it are answered.
      const lost = state.at !== null && make("p", { class: "bad" }, "Its result is missing in the transcript; what the model read here is not known.");
      return [this.text(row.of, INTERRUPTED), lost];
    }
    if (row.text === undefined) return this.text(row.of, run.text(row.call.result.content));
    return [this.text(row.of, run.text(row.text)), this.cover(row.overlay, row.of, () => run.text(row.call.result.content))];
  },

  user(row) {
    const parts = run.chars(row.item.line.text) > 0 ? [this.text(row.of, run.text(row.item.line.text), "prose")] : [];
    (row.item.line.attachments ?? []).forEach((attachment, index) => {
      const key = `${row.of}+${index + 1}`;
      const by = run.byOverlay.get(row.by[`attachment ${index + 1}`]);
      if (!by) parts.push(this.text(key, run.text(attachment.reads)));
      else parts.push(make("div", { class: `layer ${by.line.origin}` }, this.text(key, run.text(attachment.hidden)), this.cover(by, key, () => run.text(attachment.text))));
    });
    return parts;
  },

  reads(row) {
    const parts = [];
    const by = run.byOverlay.get(row.by.reasoning);
    if (by) {
      const raw = () => (row.line.reasoning ?? []).map((block) => run.text(block.text)).join("\n\n");
      parts.push(make("div", { class: `layer thin ${by.line.origin}` }, make("p", {}, "reasoning, left out"), this.cover(by, `${row.of}~`, raw)));
    } else {
      for (const [index, block] of (row.thoughts ?? []).entries()) parts.push(this.thought(`${row.of}~${index}`, block));
    }
    if (run.chars(row.line.text) > 0) parts.push(this.text(row.of, run.text(row.line.text), "prose"));
    for (const { call, reads, place } of row.shown) parts.push(this.call(call.id, call.call, row.emptied.includes(place) ? reads.emptied : null));
    for (const [overlay, call] of row.gone) {
      parts.push(make("div", { class: `layer thin ${overlay.line.origin}` }, make("p", {}, make("a", { class: "handle", href: `#${call.id}` }, call.id), ` ${firstLine(run.text(call.call.name), 40)} ${label(call.call)}: left out with its result`, this.why(overlay, call.id)), this.foot(overlay)));
    }
    return parts;
  },

  why(overlay, call) {
    const newer = Object.hasOwn(overlay.line.why ?? {}, call) ? overlay.line.why[call] : null;
    return newer === null ? "" : [", made superfluous by ", make("a", { class: "handle", href: `#${newer}` }, newer)];
  },

  thought(key, block) {
    if (block.opaque) return make("p", { class: "thought faint" }, `reasoning that only its model can read, ${count(run.chars(block.text))} characters`);
    return make("div", { class: "thought" }, this.text(key, run.text(block.text)));
  },

  call(id, call, emptied = null) {
    const name = make("p", { class: "name" }, make("b", {}, firstLine(run.text(call.name), 80)), make("a", { class: "handle", href: `#${id}` }, id));
    const text = run.text(call.arguments);
    if (emptied) {
      return make("div", { class: `call layer ${emptied.line.origin}` }, name, make("pre", { class: "text" }, "{}"), this.cover(emptied, `${id}a`, () => pretty(text)));
    }
    const sent = isObject(text) ? null : make("p", { class: "faint" }, "This is no JSON object: {} is sent in its place.");
    return make("div", { class: "call" }, name, text === "{}" ? null : this.text(`${id}a`, pretty(text), "", false), sent);
  },

  // A text, of which a long one shows its beginning until it is opened.
  text(key, text, kind = "", named = true) {
    const open = this.open.has(key);
    let lines = 1;
    for (let at = text.indexOf("\n"); at >= 0 && lines < 100_000; at = text.indexOf("\n", at + 1)) lines += 1;
    const long = lines > 16 || text.length > 1800;
    const shown = !open && text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
    const block = make("pre", { class: `text ${kind}`, "data-text": named }, shown);
    if (!long) return block;
    if (!open) block.classList.add("folded");
    const size = lines > 16 ? many(lines, "line") : `${count(text.length)} characters`;
    return [block, make("button", { class: "more quiet", "data-more": key, "aria-expanded": String(open), click: (event) => this.unfold(event, key) }, open ? "Show less" : `Show all ${size}`)];
  },

  unfold(event, key) {
    if (!this.open.delete(key)) this.open.add(key);
    const row = event.target.closest(".window > *");
    for (const [of, element] of this.rows.seen) {
      if (element !== row) continue;
      this.rows.again(of);
      break;
    }
  },

  // What lies on a content, and what lies beneath, if it is looked at.
  cover(overlay, key, text) {
    const at = `${key}^`;
    const open = this.open.has(at);
    const button = make("button", { class: "quiet", "data-more": at, "aria-expanded": String(open), click: (event) => this.unfold(event, at) }, open ? "Cover again" : "Look beneath");
    return [this.foot(overlay, "", button), open ? make("div", { class: "beneath" }, this.text(`${at}t`, text(), "", false)) : null];
  },

  foot(overlay, more = "", button = null) {
    const { origin, kind, reason } = overlay.line;
    return make("p", { class: "foot", title: run.text(reason) }, badge(origin), make("a", { class: "handle", href: `#e${overlay.id}` }, `e${overlay.id}`),
      make("span", {}, [`${kind}, ${origin}`, more].filter(Boolean).join(" · ")), button,
      make("button", { class: "lift", click: () => toggle(overlay.id) }, "Lift"));
  },

  seam(row) {
    const parts = [row.items.length > 0 ? this.named(row.items) : "", row.calls.length > 0 ? many(row.calls.length, "call") : ""].filter(Boolean).join(", ");
    return make("div", { class: `seam ${row.seam.line.origin}`, "data-seam": row.seam.id }, make("p", {}, `${parts} left out`), this.foot(row.seam));
  },

  // Items in words: 12 replies with their results, 1 message.
  named(items) {
    const replies = items.filter((item) => item.kind === "response").length;
    const others = items.length - replies;
    return [replies > 0 ? many(replies, "reply with its results", "replies with their results") : "", others > 0 ? many(others, "message") : ""].filter(Boolean).join(", ");
  },

  skip(row) {
    const open = () => {
      this.open.add(row.of);
      this.draw();
    };
    return make("div", { class: "skip-row" }, make("button", { class: "quiet", click: open }, `${many(row.skip, "message")} as before`));
  },

  head(setup) {
    if (!setup) return make("div", { class: "skip-row faint" }, run.items.length === 0 ? "Nothing was said in this run yet." : "no settings are known");
    const open = this.open.has("head");
    const tools = setup.tools.map((tool) => make("li", {}, make("b", {}, run.text(tool.name)), " ", firstLine(run.text(tool.description), 160)));
    const show = (event) => this.unfold(event, "head");
    return make("div", { class: "sheet system" },
      make("header", {}, make("a", { class: "handle", href: `#e${setup.id}` }, `e${setup.id}`), make("b", { class: "who" }, "instructions"),
        make("span", { class: "fact" }, `${many(setup.tools.length, "tool")} · ${run.text(setup.model)}`),
        make("button", { class: "quiet", "data-more": "head", "aria-expanded": String(open), click: show }, open ? "Fold" : "Show")),
      open ? [this.text("instructions", run.text(setup.instructions), "prose", false), make("ul", { class: "tools" }, tools)] : null);
  },

  reply({ reply, at }) {
    const faults = (at.faults ?? []).map((fault) => make("p", { class: "bad" }, `attempt ${fault.attempt}: ${fault.class}${fault.status === undefined ? "" : ` ${fault.status}`}, `, firstLine(run.text(fault.message), 400)));
    if (!reply) return make("div", { class: "answer" }, make("h3", {}, run.isRebuilt(at) ? "No reply was recorded" : run.isOver(at) ? "No reply came" : "Waiting for the reply…"), faults);
    const used = reply.used;
    const facts = [`${count(used.input)} in`, `${count(used.cached)} cached`, `${count(used.output)} out`, used.cost === undefined ? "" : money(used.cost), reply.ms === undefined ? "" : span(reply.ms), reply.ending === "complete" ? "" : reply.ending].filter(Boolean);
    const own = `e${reply.id}`;
    return make("div", { class: "answer" },
      make("h3", {}, "Answered"), faults,
      make("article", { class: "sheet by-assistant" },
        make("header", {}, make("a", { class: "handle", href: `#e${reply.id}` }, own), make("b", { class: "who" }, "assistant"), make("span", { class: "fact" }, facts.join(" · "))),
        (reply.reasoning ?? []).map((block, index) => this.thought(`reply${own}~${index}`, block)),
        run.chars(reply.text) > 0 ? this.text(`reply${own}`, run.text(reply.text), "prose", false) : null,
        (reply.calls ?? []).map((call, index) => this.call(`${reply.id}.${index + 1}`, call))));
  },

  // A message of a request that is not for a round, exactly as it was sent.
  exact(row) {
    const piece = row.exact;
    const parts = [];
    if (piece.text !== undefined) parts.push(this.text(row.of, run.text(piece.text), row.role === "t" ? "" : "prose"));
    else if (row.role === "t") parts.push(this.text(row.of, row.call?.result ? run.text(row.call.result.content) : ""));
    else if (row.item && run.chars(row.item.line.text) > 0) parts.push(this.text(row.of, run.text(row.item.line.text), "prose"));
    if (row.role === "a" && row.item) {
      const other = new Map(piece.arguments ?? []);
      row.item.calls.forEach((call, index) => {
        const place = index + 1;
        if (piece.calls && !piece.calls.includes(place)) return;
        const reads = other.get(place);
        parts.push(this.call(`${call.id}`, reads === undefined ? call.call : { ...call.call, arguments: reads }));
      });
    }
    return parts;
  },
};

// A piece as a row of its own.
function sent(piece, place) {
  const row = { of: `${piece.of}`, role: piece.role, exact: piece, by: {}, asked: piece.of === "a" };
  if (piece.of === "a") row.of = `a${place}`;
  else if (piece.role === "t") row.call = run.call(piece.of);
  else if (piece.of.startsWith("e")) row.item = run.byItem.get(Number(piece.of.slice(1)));
  return row;
}

// What differs between two requests' messages: each that is new, changed or gone, in its place.
function changes(before, after) {
  const keys = (rows) => new Set(rows.map((row) => row.of));
  const [old, now] = [keys(before), keys(after)];
  const rows = [];
  const alike = (one, other) => Boolean(one.seam) === Boolean(other.seam) && (one.seam || form(one) === form(other));
  let same = [];
  const flush = () => {
    const key = `skip${same[0]?.of}`;
    if (same.length > 3 && !panel.open.has(key)) rows.push({ of: key, skip: same.filter((row) => !row.seam).length });
    else rows.push(...same);
    same = [];
  };
  let place = 0;
  for (const row of after) {
    while (place < before.length && before[place].of !== row.of && !(now.has(before[place].of) && !old.has(row.of))) {
      const gone = before[place];
      place += 1;
      if (now.has(gone.of) || gone.seam) continue;
      flush();
      rows.push({ ...gone, of: `${gone.of}`, change: "gone" });
    }
    if (!old.has(row.of)) {
      flush();
      rows.push({ ...row, change: "new" });
      continue;
    }
    if (place < before.length && alike(before[place], row)) same.push(row);
    else {
      flush();
      rows.push({ ...row, change: "changed" });
    }
    place += 1;
  }
  flush();
  for (const gone of before.slice(place)) if (!now.has(gone.of) && !gone.seam) rows.push({ ...gone, change: "gone" });
  return rows;
}

// Whether arguments are what a server takes.
function isObject(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" && !Array.isArray(value);
  } catch {
    return false;
  }
}

// Arguments as they are easiest to read: the values of an object one by one, all else as it is.
function pretty(text) {
  if (text.length > 400_000) return text;
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return text;
    const names = Object.entries(value);
    const one = (item) => (typeof item === "string" ? item : JSON.stringify(item, null, 1));
    return names.map(([name, item]) => {
      const shown = one(item);
      return shown.includes("\n") ? `${name}:\n${shown.replace(/^/gm, "  ")}` : `${name}: ${shown}`;
    }).join("\n");
  } catch {
    return text;
  }
}

