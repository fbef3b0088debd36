// Turns and rounds, and between them what changed how the run reads.

const timeline = {
  rows: null,
  most: 1,

  start() {
    this.rows = new Rows(byId("rounds"), {
      make: (line) => this.row(line),
      guess: (line) => (line.turn !== undefined && line.type === "user" ? 52 : line.type === "request" && line.purpose === "round" ? 44 : 26),
      key: (line) => line.id,
      label: "Turns and rounds",
      role: "group",
    });
  },

  // Which entries have a row of their own.
  shows(line) {
    if (line.type === "request") return true;
    return ["user", "overlay", "retract", "pin", "unpin", "fault", "note", "end", "unknown"].includes(line.type) || (line.type === "setup" && line !== run.setups[0]);
  },

  draw({ keep = true } = {}) {
    this.most = list.rounds.reduce((most, line) => Math.max(most, line.sent), 1);
    const rows = run.entries.filter((line) => this.shows(line));
    rows.push({ id: END, type: "now" });
    this.rows.set(rows, { keep });
    this.select();
  },

  select() {
    const chosen = state.at ? state.at.id : END;
    for (const [key, element] of this.rows.seen) {
      if (key === chosen) element.setAttribute("aria-current", "true");
      else element.removeAttribute("aria-current");
    }
  },

  row(line) {
    const row = this.make(line);
    row.classList.add("line");
    if (line.id === (state.at ? state.at.id : END)) row.setAttribute("aria-current", "true");
    return row;
  },

  make(line) {
    switch (line.type) {
      case "user":
        return this.user(line);
      case "request":
        return line.purpose === "round" ? this.round(line) : this.asked(line);
      case "overlay":
        return this.aside(line, [badge(line.origin), ` ${line.kind} `, make("span", { class: "faint" }, saved(line))], line.origin);
      case "retract":
        return this.aside(line, [`takes back ${line.overlays.map((id) => `e${id}`).join(" ")}`], line.origin);
      case "pin":
      case "unpin":
        return this.aside(line, [`${line.type} e${line.entry}`]);
      case "fault":
        return this.aside(line, [`fault: ${line.class}`, line.wait_ms === undefined ? "" : `, again after ${span(line.wait_ms)}`], "bad");
      case "note":
        return this.aside(line, [`${line.kind.replace("_", " ")}: `, firstLine(run.text(line.text), 80)]);
      case "setup":
        return this.aside(line, ["settings changed"]);
      case "end":
        return this.aside(line, [make("b", {}, `end: ${line.reason.replace("_", " ")}`)]);
      case "now":
        return make("button", { class: "round now", click: () => choose(null) }, make("b", {}, run.end ? "after the end" : "now"), make("span", {}, "as it reads next"));
      default:
        return this.aside(line, [`an entry of another version: ${firstLine(run.text(line.kind), 40)}`]);
    }
  },

  user(line) {
    const text = firstLine(run.text(line.text), 140) || "(attachments)";
    if (line.turn === undefined) return this.aside(line, [`${line.origin}: `, text]);
    return make("button", { class: "turn", click: () => goEntry(line.id) }, make("b", {}, `Turn ${line.turn}`), make("span", {}, text));
  },

  round(line) {
    const bar = make("span", { class: "bar-of", "aria-hidden": "true" });
    const part = make("i", {});
    part.style.width = `${Math.max(1, (100 * line.sent) / this.most)}%`;
    bar.append(part);
    return make(
      "button",
      { class: "round", click: () => choose(line) },
      make("b", {}, line.round === undefined ? `e${line.id}` : `r${line.round}`),
      make("span", { class: "did" }, this.did(line)),
      make("span", { class: "size" }, short(line.sent)),
      bar,
    );
  },

  // What came of a round, in words.
  did(line) {
    const response = line.response;
    if (!response) return [make("span", { class: "faint" }, line.faults ? `failed: ${line.faults[line.faults.length - 1].class}` : run.isOver(line) ? "no reply" : "under way…")];
    const calls = response.calls ?? [];
    if (calls.length === 0) return [firstLine(run.text(response.text), 90) || make("span", { class: "faint" }, "nothing")];
    return calls.slice(0, 4).map((call, index) => {
      const result = run.call(`${response.id}.${index + 1}`)?.result;
      const lost = !result && line.at + 1 < list.rounds.length;
      const bad = lost || (result && result.status !== "ok") ? make("span", { class: "bad" }, lost ? " result missing" : ` ${result.status}`) : "";
      return make("span", { class: "did-call" }, make("em", {}, firstLine(run.text(call.name), 30)), " ", label(call), bad);
    }).concat(calls.length > 4 ? [make("span", { class: "faint" }, `and ${calls.length - 4} more`)] : []);
  },

  asked(line) {
    const what = { summary: "asks for a summary", combine: "asks to combine summaries", repair: "asks for a correction" };
    return this.aside(line, [what[line.purpose] ?? "asks", make("span", { class: "faint" }, ` ${short(line.sent)}`)], "asked", () => choose(line));
  },

  aside(line, children, kind = "", click = () => goEntry(line.id)) {
    return make("button", { class: `aside ${kind}`, click }, make("span", { class: "id" }, `e${line.id}`), make("span", { class: "what" }, children));
  },
};

// What an overlay frees.
function saved(line) {
  const [before, after] = line.size;
  if (before === after) return "";
  return after < before ? `−${short(before - after)}` : `+${short(after - before)}`;
}

// What a call is about: its first short text.
function label(call) {
  const text = run.text(call.arguments);
  if (text.length > 20_000) return "";
  try {
    const values = Object.values(JSON.parse(text));
    const first = values.find((value) => typeof value === "string" && value !== "");
    return first === undefined ? "" : firstLine(first, 60);
  } catch {
    return firstLine(text, 60);
  }
}

