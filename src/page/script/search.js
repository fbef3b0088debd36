// Search over everything that the run read and wrote, as it is recorded.

const search = {
  query: "",
  hits: [],
  at: -1,
  turn: 0,

  // The texts of an entry that can be found, with where they are shown.
  texts(line) {
    switch (line.type) {
      case "user":
        return [[line.text, `e${line.id}`], ...(line.attachments ?? []).flatMap((it, index) => [[it.name, `e${line.id}`], [it.text, `e${line.id}`, `e${line.id}+${index + 1}`]])];
      case "response": {
        const thoughts = (line.reasoning ?? []).filter((block) => !block.opaque).map((block, index) => [block.text, `e${line.id}`, `e${line.id}~${index}`]);
        const calls = (line.calls ?? []).flatMap((call, index) => [[call.name, `e${line.id}`], [call.arguments, `e${line.id}`, `${line.id}.${index + 1}a`]]);
        return [...thoughts, [line.text, `e${line.id}`], ...calls];
      }
      case "result":
        return [[line.content, line.call]];
      case "overlay":
        return [[line.reason, `e${line.id}`], ...(line.kind === "summary" ? [[line.text, `s${line.id}`]] : [])];
      case "fault":
        return [[line.message, `e${line.id}`]];
      case "note":
      case "end":
        return [[line.text, `e${line.id}`]];
      case "setup":
        return [[line.instructions, `e${line.id}`], ...line.tools.flatMap((tool) => [[tool.name, `e${line.id}`], [tool.description, `e${line.id}`]])];
      case "unknown":
        return [[line.json, `e${line.id}`]];
      default:
        return [];
    }
  },

  // Looks through all entries, a few at a time, so that typing is never held up.
  start(query, at = -1) {
    this.query = query;
    this.hits = [];
    this.at = at;
    this.turn += 1;
    const turn = this.turn;
    if (query === "") return this.show();
    const pattern = this.pattern();
    const known = new Map();
    let place = 0;
    const go = () => {
      if (turn !== this.turn) return;
      const until = performance.now() + 12;
      while (place < run.entries.length && performance.now() < until) {
        const line = run.entries[place];
        place += 1;
        for (const [number, of, key] of this.texts(line)) {
          let times = known.get(number);
          if (times === undefined) {
            times = 0;
            pattern.lastIndex = 0;
            const text = run.text(number);
            while (times < 10_000 && pattern.exec(text)) times += 1;
            known.set(number, times);
          }
          if (times > 0) this.hits.push({ line, of, key: key ?? of, times });
        }
      }
      this.show(place < run.entries.length);
      if (place < run.entries.length) setTimeout(go);
    };
    go();
  },

  pattern() {
    return new RegExp(this.query.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "giu");
  },

  show(more = false) {
    const times = this.hits.reduce((sum, hit) => sum + hit.times, 0);
    const text = this.query === "" ? "" : this.hits.length === 0 && !more ? "none" : `${this.at >= 0 ? `${count(this.at + 1)} of ` : ""}${count(this.hits.length)}${more ? "…" : ""}`;
    const found = byId("found");
    fill(found, text);
    found.title = this.query === "" ? "" : `${many(times, "time")} in ${many(this.hits.length, "text")}`;
    this.light();
  },

  go(step) {
    if (this.hits.length === 0) return;
    this.at = this.at < 0 ? (step > 0 ? 0 : this.hits.length - 1) : (this.at + step + this.hits.length) % this.hits.length;
    const hit = this.hits[this.at];
    panel.open.add(hit.key);
    goEntry(hit.line.id, hit.of, true);
    this.show();
    this.near();
  },

  // Marks what is in sight, without touching the page's text.
  light() {
    if (!globalThis.Highlight || !CSS.highlights) return;
    CSS.highlights.delete("found");
    if (this.query === "") return;
    const pattern = this.pattern();
    const ranges = [];
    for (const box of [byId("messages"), byId("card")]) {
      const walk = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
      while (walk.nextNode() && ranges.length < 2000) {
        pattern.lastIndex = 0;
        for (let found = pattern.exec(walk.currentNode.data); found && ranges.length < 2000; found = pattern.exec(walk.currentNode.data)) {
          const range = new Range();
          range.setStart(walk.currentNode, found.index);
          range.setEnd(walk.currentNode, found.index + found[0].length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  },

  // Brings the first marked place of the message that was gone to into sight.
  near() {
    const hit = this.hits[this.at];
    const row = panel.rows.seen.get(hit.of);
    if (!row || !globalThis.Highlight) return;
    for (const range of CSS.highlights.get("found") ?? []) {
      if (!row.contains(range.startContainer)) continue;
      const box = range.getBoundingClientRect();
      const view = byId("messages").getBoundingClientRect();
      if (box.top < view.top || box.bottom > view.bottom) byId("messages").scrollTop += box.top - view.top - view.height / 3;
      break;
    }
  },
};

