// The size of the view over the requests: everything in full above, what was sent below, the trigger
// between them, and a mark for each overlay and retract. Shapes tell origins apart as colours do.

const SHAPES = {
  micro: "M0-4A4 4 0 1 1 0 4A4 4 0 1 1 0-4Z",
  auto: "M-3.6-3.6H3.6V3.6H-3.6Z",
  tool: "M0-4.6L4.4 3.4H-4.4Z",
  recovery: "M0-5L5 0L0 5L-5 0Z",
  user: "M0-5L1.5-1.6L5-1.4L2.3.9L3.2 4.4L0 2.5L-3.2 4.4L-2.3.9L-5-1.4L-1.5-1.6Z",
};

const chart = {
  box: null,

  draw() {
    const plot = byId("plot");
    const rounds = list.rounds;
    // Of a run that asked nothing there is nothing to draw.
    plot.hidden = rounds.length === 0;
    if (plot.hidden) this.read(null);
    const width = plot.clientWidth;
    const height = plot.clientHeight;
    if (width === 0 || height === 0) return;
    const lane = 26;
    const box = { left: 46, right: width - 10, top: lane + 4, bottom: height - 16 };
    this.box = box;
    const most = rounds.reduce((most, line) => Math.max(most, line.sent, line.full ?? 0), 1);
    // What was laid after the last request has a place of its own behind it.
    const newest = rounds[rounds.length - 1]?.id ?? 0;
    this.after = run.entries.some((line) => line.id > newest && (line.type === "overlay" || line.type === "retract"));
    this.places = rounds.length + (this.after ? 1 : 0);
    const last = Math.max(1, this.places - 1);
    this.x = (place) => box.left + ((box.right - box.left) * (this.places === 1 ? 0.5 : place / last));
    const steps = this.scale(rounds, most, box);
    const svg = make("svg:svg", {
      viewBox: `0 0 ${width} ${height}`, width, height, role: "slider", tabindex: 0,
      "aria-label": "Request, by its place in the run", "aria-valuemin": 1, "aria-valuemax": rounds.length,
      pointermove: (event) => this.hover(this.placeAt(event)),
      pointerleave: () => this.hover(null),
      click: (event) => this.pick(event),
      keydown: (event) => this.key(event),
    });
    for (const tokens of steps) {
      const y = this.y(tokens);
      svg.append(make("svg:path", { class: "grid", d: `M${box.left} ${y}H${box.right}` }));
      svg.append(make("svg:text", { class: "tick", x: box.left - 6, y: y + 3, "text-anchor": "end" }, short(tokens)));
    }
    svg.append(make("svg:path", { class: "base", d: `M${box.left} ${box.bottom}H${box.right}` }));
    this.ticks(svg, rounds, box, height);
    svg.append(make("svg:path", { class: "raw", d: this.area(rounds, "full") }));
    svg.append(make("svg:path", { class: "raw-line", d: this.line(rounds, "full") }));
    svg.append(make("svg:path", { class: "sent", d: this.area(rounds, "sent") }));
    svg.append(make("svg:path", { class: "sent-line", d: this.line(rounds, "sent") }));
    svg.append(make("svg:path", { class: "trigger", d: this.line(rounds, "trigger") }));
    this.marks(svg, box);
    this.cursor = make("svg:path", { class: "cursor", d: "" });
    this.chosen = make("svg:g", { class: "chosen" });
    svg.append(this.cursor, this.chosen);
    this.svg = svg;
    fill(plot, svg);
    this.legend();
    this.select();
  },

  // How high a number of tokens stands, and the numbers that are told. Where what was sent would lie
  // flat below what it would be in full, each ten times more is as high as the ten times before.
  scale(rounds, most, box) {
    const tall = box.bottom - box.top;
    const sent = rounds.reduce((most, line) => Math.max(most, line.sent), 1);
    this.log = most > 8 * sent;
    if (!this.log) {
      const step = niceStep(most, tall / 34);
      const high = Math.ceil((most * 1.02) / step) * step;
      this.y = (tokens) => box.bottom - (tall * tokens) / high;
      return Array.from({ length: Math.round(high / step) }, (_, place) => (place + 1) * step);
    }
    const least = Math.max(1, rounds.reduce((least, line) => Math.min(least, line.sent), Infinity));
    const low = Math.floor(Math.log10(least));
    const high = Math.log10(most * 1.05);
    this.y = (tokens) => box.bottom - (tall * Math.max(0, Math.log10(Math.max(1, tokens)) - low)) / Math.max(0.1, high - low);
    return Array.from({ length: Math.max(0, Math.floor(high) - low) }, (_, place) => 10 ** (low + place + 1));
  },

  ticks(svg, rounds, box, height) {
    const step = niceStep(rounds.length, (box.right - box.left) / 70);
    for (const line of rounds) {
      if (line.round === undefined || line.round % step !== 0) continue;
      const x = this.x(line.at);
      if (x > box.right - (this.after ? 36 : 8)) continue;
      svg.append(make("svg:text", { class: "tick", x, y: height - 3, "text-anchor": "middle" }, `r${line.round}`));
    }
    if (this.after) svg.append(make("svg:text", { class: "tick", x: box.right, y: height - 3, "text-anchor": "end" }, "after"));
  },

  // A line of at most a few points a pixel: of many, the least and the most.
  points(rounds, field) {
    const wide = Math.max(1, Math.ceil(rounds.length / (2 * Math.max(1, this.box.right - this.box.left))));
    const points = [];
    for (let from = 0; from < rounds.length; from += wide) {
      const some = rounds.slice(from, from + wide).filter((line) => line[field] !== undefined);
      if (some.length === 0) continue;
      const bySize = (one, other) => one[field] - other[field];
      const ends = wide === 1 ? some : [some.reduce((a, b) => (bySize(a, b) <= 0 ? a : b)), some.reduce((a, b) => (bySize(a, b) > 0 ? a : b))];
      ends.sort((one, other) => one.at - other.at);
      for (const line of new Set(ends)) points.push([this.x(line.at), this.y(line[field])]);
    }
    return points;
  },

  line(rounds, field) {
    const points = this.points(rounds, field);
    if (points.length === 1) points.push([points[0][0] + 3, points[0][1]]);
    return points.map(([x, y], place) => `${place ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  },

  area(rounds, field) {
    const points = this.points(rounds, field);
    if (points.length === 0) return "";
    const [first, last] = [points[0][0], points[points.length - 1][0]];
    return `${this.line(rounds, field)}V${this.box.bottom}H${first.toFixed(1)}Z`.replace(/V/, last === first ? "h0V" : "V");
  },

  // Every overlay and every retract, above the request that first read so, or behind the last one; what
  // stands at one place is stacked.
  marks(svg, box) {
    const stacked = new Map();
    const crowd = run.overlays.length > 150;
    const size = crowd ? 0.68 : 1;
    const place = (id) => {
      const x = this.x(firstAt(list.rounds, id));
      const column = Math.round(x / (8 * size));
      const depth = stacked.get(column) ?? 0;
      stacked.set(column, depth + 1);
      return [x, box.top - 10 - (depth % 3) * 8 * size, depth];
    };
    const group = make("svg:g", { class: crowd ? "marks many" : "marks" });
    const mark = (id, origin, kind, path, label) => {
      const [x, y, depth] = place(id);
      if (depth === 0) group.append(make("svg:path", { class: `stem ${origin}`, d: `M${x} ${box.top - 8}V${box.bottom}` }));
      const shape = make("svg:path", { class: `mark ${origin} ${kind}`, d: path, transform: `translate(${x} ${y}) scale(${size})`, "data-mark": id });
      shape.append(make("svg:title", {}, label));
      group.append(shape);
    };
    const behind = (id) => (firstAt(list.rounds, id) < list.rounds.length ? "" : ", after the last request");
    for (const overlay of run.overlays) {
      const { origin, kind, size } = overlay.line;
      const known = ORIGINS.includes(origin) ? origin : "user";
      const label = `e${overlay.id} ${kind} by ${origin}: ${count(size[0])} to ${count(size[1])} tokens${behind(overlay.id)}`;
      mark(overlay.id, known, overlay.retracted ? "taken" : "lies", SHAPES[known], label);
    }
    for (const line of run.entries) {
      if (line.type !== "retract") continue;
      const known = ORIGINS.includes(line.origin) ? line.origin : "user";
      mark(line.id, known, "retract", "M-4-4L4 4M4-4L-4 4", `e${line.id} takes back ${line.overlays.map((id) => `e${id}`).join(" ")}${behind(line.id)}`);
    }
    svg.append(group);
  },

  placeAt(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - this.box.left) / Math.max(1, this.box.right - this.box.left);
    return Math.max(0, Math.min(this.places - 1, Math.round(share * (this.places - 1))));
  },

  pick(event) {
    const mark = event.target.closest?.("[data-mark]");
    if (mark) goEntry(Number(mark.getAttribute("data-mark")));
    else if (list.rounds.length > 0) choose(list.rounds[this.placeAt(event)] ?? null);
  },

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -END, End: END };
    const step = steps[event.key];
    if (step === undefined || !Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    const now = state.at?.at ?? list.rounds.length - 1;
    choose(list.rounds[Math.max(0, Math.min(list.rounds.length - 1, now + step))]);
  },

  hover(place) {
    const line = place === null ? null : list.rounds[place];
    this.cursor?.setAttribute("d", place !== null && this.places > 0 ? `M${this.x(place)} ${this.box.top - 8}V${this.box.bottom}` : "");
    this.read(place === null ? this.current() : line);
  },

  current() {
    return state.at?.purpose === "round" ? state.at : null;
  },

  // Shows the chosen request.
  select() {
    if (!this.svg) return;
    const line = this.current();
    fill(this.chosen);
    if (line) {
      const x = this.x(line.at);
      this.chosen.append(
        make("svg:path", { d: `M${x} ${this.box.top - 8}V${this.box.bottom}` }),
        make("svg:circle", { cx: x, cy: this.y(line.sent), r: 3.5 }),
      );
      this.svg.setAttribute("aria-valuenow", line.at + 1);
      this.svg.setAttribute("aria-valuetext", `round ${line.round ?? ""}, ${count(line.sent)} tokens sent${line.full === undefined ? "" : `, ${count(line.full)} in full`}`);
    } else if (this.after && !state.at) {
      const x = this.x(this.places - 1);
      this.chosen.append(make("svg:path", { d: `M${x} ${this.box.top - 8}V${this.box.bottom}` }));
    }
    this.read(line);
  },

  read(line) {
    const readout = byId("readout");
    const item = (name, ...text) => make("span", {}, make("b", {}, name), " ", text);
    if (!line && state.at) {
      fill(readout, item(`e${state.at.id}`), item(...sentSize(state.at)), item("asked for", { summary: "a summary", combine: "one summary of several" }[state.at.purpose] ?? "a correction"));
      return;
    }
    if (!line) {
      const none = list.rounds.length === 0 ? "No request was made." : `Each request, as it ${run.isRebuilt(list.rounds[0]) ? "is built anew from the recording" : "was sent"}; what it would be in full stands above it.`;
      fill(readout, state.at === null && this.after ? "After the last request: not sent yet." : none);
      return;
    }
    const used = line.response?.used;
    const saved = line.full === undefined ? "" : less(line.sent, line.full);
    fill(
      readout,
      item(line.round === undefined ? `e${line.id}` : `r${line.round}`, ""),
      item(...sentSize(line), saved ? `, ${saved}` : ""),
      item("in full", line.full === undefined ? "not known: a result is missing" : `${line.full === line.sent ? "" : "about "}${count(line.full)}`),
      line.trigger === undefined ? null : item("trigger", count(line.trigger)),
      used ? item("cached", used.input > 0 ? `${Math.round((100 * used.cached) / used.input)} %` : "none") : null,
      used ? item("out", count(used.output)) : null,
      used?.cost === undefined ? null : item("cost", money(used.cost)),
    );
  },

  legend() {
    const used = new Set(run.overlays.map((overlay) => overlay.line.origin));
    const line = (kind, text) => make("li", {}, make("svg:svg", { viewBox: "0 0 16 10", width: 16, height: 10, "aria-hidden": "true" }, make("svg:path", { class: kind, d: "M0 5H16" })), text);
    fill(
      byId("legend"),
      line("raw-line", this.log ? "in full (logarithmic)" : "in full"),
      line("sent-line", "sent"),
      line("trigger", "trigger"),
      ORIGINS.filter((origin) => used.has(origin)).map((origin) => make("li", {}, badge(origin), origin)),
    );
  },
};

// What is said of a request's size: as the provider counted it, or as it was estimated.
const sentSize = (line) =>
  line.counted ? ["sent", count(line.sent)] : [run.isRebuilt(line) ? "rebuilt" : "sent", `about ${count(line.sent)}`];

// The shape and colour of an origin.
const badge = (origin) =>
  make("svg:svg", { class: "badge", viewBox: "-6 -6 12 12", width: 12, height: 12, "aria-hidden": "true" }, make("svg:path", { class: `mark ${ORIGINS.includes(origin) ? origin : "user"}`, d: SHAPES[ORIGINS.includes(origin) ? origin : "user"] }));

// A round number that cuts a size into about so many parts.
function niceStep(size, partsWanted) {
  const raw = size / Math.max(1, partsWanted);
  const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
  return [1, 2, 5, 10].map((n) => n * power).find((step) => step >= raw) ?? power * 10;
}

