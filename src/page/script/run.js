// The run: its entries as they were told, and what follows from them by counting.

const ORIGINS = ["micro", "auto", "tool", "recovery", "user"];
const END = Number.MAX_SAFE_INTEGER;
const INTERRUPTED = "interrupted, effect unknown";

const run = {
  last: 0,
  facts: null,
  texts: [],
  pieces: [],
  entries: [],
  byEntry: new Map(),
  // What can be read: users' entries and replies of rounds, each with what lies on it.
  items: [],
  byItem: new Map(),
  setups: [],
  overlays: [],
  byOverlay: new Map(),
  requests: [],
  byRequest: new Map(),
  turns: [],
  rounds: 0,
  calls: 0,
  used: { input: 0, cached: 0, output: 0, cost: null },
  // The largest request that the provider counted, and what the rule alone makes of it.
  largest: { counted: 0, base: 0 },
  work: 0,
  end: null,
  damage: [],

  // Takes in what is new; false if it does not follow what is known.
  take(more) {
    if (more.after !== this.last) return false;
    for (const text of more.texts) this.texts.push(text);
    for (const piece of more.pieces) this.pieces.push(piece);
    for (const text of more.damage ?? []) this.damage.push(text);
    for (const line of more.entries) {
      this.entries.push(line);
      this.byEntry.set(line.id, line);
      this.last = line.id;
      const take = TAKE.get(line.type);
      if (take) take(line);
    }
    return true;
  },

  // A text in full, or with a line that says what is left out.
  text(number) {
    const text = this.texts[number];
    if (typeof text === "string") return text;
    const where = this.facts ? ` ${this.facts.short}` : "";
    return `${text[0]}\n⋯ ${count(text[2])} characters are too many for this page: undertext print${where} ⋯\n${text[1]}`;
  },

  // The number of what an open call reads as.
  interrupted() {
    if (!(this.openText >= 0)) this.openText = this.texts.indexOf(INTERRUPTED);
    return this.openText;
  },

  chars(number) {
    const text = this.texts[number];
    return typeof text === "string" ? text.length : text[0].length + text[1].length + text[2];
  },

  // The items whose entries lie within a span, among those there are now.
  within(from, to) {
    return this.items.slice(firstAt(this.items, from), firstAt(this.items, to + 1));
  },

  call(id) {
    const [response, place] = parts(id);
    const item = this.byItem.get(response);
    return item?.calls?.[place - 1];
  },

  // Whether another agent asked this, so that the request is built anew from what it wrote down. A reply
  // to us has its time.
  isRebuilt(request) {
    const { imported, parent } = this.facts ?? {};
    if (!imported || !request) return false;
    return (!parent || request.id <= parent.entry) && request.response?.ms === undefined;
  },

  // Whether no reply can come to a request any more.
  isOver(request) {
    return Boolean(this.end) || this.isRebuilt(request) || request !== this.requests[this.requests.length - 1];
  },

  // The settings in force before an entry.
  setup(at) {
    const place = firstAt(this.setups, at);
    return place > 0 ? this.setups[place - 1] : null;
  },
};

const parts = (call) => call.split(".").map(Number);

// The first of a list, ordered by id, that is at this id or behind it.
function firstAt(list, id) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (list[middle].id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

// The size of a request, and what it would be in full: as much more as layers keep from it. That is
// estimated as densely as the largest request was that the provider counted: of a small one, what the
// rule does not see, such as instructions that were not recorded, is too large a part.
function measure(request, sent) {
  request.sent = sent;
  if (request.kept === undefined) return;
  const { counted, base } = run.largest.counted > 0 ? run.largest : { counted: request.tokens, base: request.base };
  request.full = request.kept === 0 ? sent : Math.max(0, Math.round(sent + (request.kept * counted) / Math.max(1, base)));
}

function spend(used) {
  const all = run.used;
  all.input += used.input;
  all.cached += used.cached;
  all.output += used.output;
  if (used.cost !== undefined) all.cost = (all.cost ?? 0) + used.cost;
}

const TAKE = new Map(Object.entries({
  run(line) {
    run.facts = line;
  },
  setup(line) {
    run.setups.push(line);
  },
  user(line) {
    const attachments = (line.attachments ?? []).map(() => []);
    const item = { id: line.id, kind: "user", line, covers: [], attachments };
    run.items.push(item);
    run.byItem.set(line.id, item);
    if (line.turn !== undefined) run.turns.push(line);
  },
  request(line) {
    // Its size as it was estimated, until the provider has counted it.
    measure(line, line.tokens);
    line.place = run.requests.length;
    line.laid = run.overlays.length;
    run.requests.push(line);
    run.byRequest.set(line.id, line);
    if (line.round !== undefined) run.rounds = Math.max(run.rounds, line.round);
    list.take(line);
  },
  response(line) {
    spend(line.used);
    const request = run.byRequest.get(line.request);
    if (request) request.response = line;
    if (request && line.counted > 0) {
      request.counted = true;
      if (request.purpose === "round" && request.base > 0 && line.counted >= run.largest.counted) {
        run.largest = { counted: line.counted, base: request.base };
      }
      measure(request, line.counted);
    }
    if (line.corrects !== undefined) run.byItem.get(line.corrects)?.corrections.push(line);
    if (line.round === undefined) return;
    const calls = (line.calls ?? []).map((call, index) => ({
      id: `${line.id}.${index + 1}`, call, layers: [], result: null,
    }));
    const item = {
      id: line.id, kind: "response", line, covers: [], hidden: [], reasoning: [], corrections: [], calls,
    };
    run.items.push(item);
    run.byItem.set(line.id, item);
  },
  result(line) {
    const call = run.call(line.call);
    if (!call || call.result) return;
    call.result = line;
    run.calls += 1;
  },
  overlay(line) {
    const overlay = { id: line.id, line, retracted: null, touched: 0 };
    run.overlays.push(overlay);
    run.byOverlay.set(line.id, overlay);
    lay(overlay);
  },
  retract(line) {
    for (const id of line.overlays) {
      const overlay = run.byOverlay.get(id);
      if (overlay && !overlay.retracted) overlay.retracted = line.id;
    }
  },
  fault(line) {
    spend(line.used);
    const request = run.byRequest.get(line.request);
    if (request) (request.faults ??= []).push(line);
  },
  end(line) {
    run.end = line;
    run.work += line.ms;
  },
}));

// The exact messages of each request, as numbers of pieces. Each is told by the round before;
// every so many are kept whole.
const list = {
  rounds: [],
  kept: new Map(),
  newest: null,

  take(line) {
    if (line.purpose !== "round") return;
    line.at = this.rounds.length;
    this.rounds.push(line);
    const whole = this.follow(this.newest ?? [], line);
    this.newest = whole;
    if (line.at % 64 === 0) this.kept.set(line.at, whole.slice());
  },

  follow(before, line) {
    before.length = Math.min(before.length, line.keep);
    return this.spell(before, line.then);
  },

  // Numbers of which `a, -b` are all from a to b.
  spell(into, told) {
    for (const number of told) {
      if (number >= 0) into.push(number);
      else for (let next = into[into.length - 1] + 1; next <= -number; next += 1) into.push(next);
    }
    return into;
  },

  // The pieces of a request.
  of(line) {
    if (line.purpose !== "round") return this.spell([], line.then).map((number) => run.pieces[number]);
    const from = line.at - (line.at % 64);
    let numbers = this.kept.get(from).slice();
    for (let at = from + 1; at <= line.at; at += 1) numbers = this.follow(numbers, this.rounds[at]);
    return numbers.map((number) => run.pieces[number]);
  },
};

