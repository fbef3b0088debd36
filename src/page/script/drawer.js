// The layers of a request: every overlay that was laid before it, each with a switch.

const drawer = {
  rows: null,

  start() {
    this.rows = new Rows(byId("layers"), {
      make: (row) => this.element(row),
      guess: () => 92,
      key: (overlay) => overlay.id,
      label: "Layers, newest first",
    });
  },

  // The overlays that were laid before what is chosen, newest first.
  laid() {
    const at = state.at ? state.at.id : END;
    return run.overlays.slice(0, firstAt(run.overlays, at)).reverse();
  },

  // Whether what is chosen reads through layers; a request that is not for a round is shown as it was.
  get isRound() {
    return !state.at || state.at.purpose === "round";
  },

  draw({ keep = true } = {}) {
    const laid = this.laid();
    const at = state.at ? state.at.id : END;
    const stands = standing(at, state.lifted);
    const lie = laid.filter(stands).length;
    const counted = byId("laid");
    fill(counted, laid.length === 0 ? "none: all reads in full" : lie === laid.length ? many(lie, "layer") : `${count(lie)} of ${count(laid.length)}`);
    counted.title = laid.length > lie ? `${count(laid.length - lie)} lifted or taken back` : "";
    byId("lay-all").disabled = state.lifted.size === 0 || !this.isRound;
    byId("lift-all").disabled = lie === 0 || !this.isRound;
    const apart = byId("apart");
    apart.hidden = this.isRound || laid.length === 0;
    if (!apart.hidden) fill(apart, APART[state.at.purpose] ?? APART.repair);
    this.rows.set(laid, { keep });
    byId("tabs").querySelector('[data-tab="drawer"]').textContent = laid.length > 0 ? `Layers (${lie})` : "Layers";
  },

  element(overlay) {
    const line = overlay.line;
    const at = state.at ? state.at.id : END;
    const taken = overlay.retracted && overlay.retracted < at;
    const lies = !taken && !state.lifted.has(overlay.id);
    const chosen = state.overlay === overlay.id;
    const row = make("div", { class: `overlay ${line.origin} ${lies ? "" : "off"} ${chosen ? "at" : ""}`, role: "listitem", "data-layer": overlay.id });
    const on = make("button", { role: "switch", class: "switch", "data-overlay": overlay.id, "aria-checked": String(lies), disabled: Boolean(taken) || !this.isRound, "aria-label": `Layer e${overlay.id}, ${line.kind} by ${line.origin}`, title: !this.isRound ? "Nothing can be lifted here" : lies ? "Lift this layer" : "Lay it back", click: () => toggle(overlay.id) });
    const size = line.size[0] === line.size[1] ? "" : `${short(line.size[0])} → ${short(line.size[1])} tokens`;
    const why = run.text(line.reason);
    const rule = run.text(line.rule);
    add(row, [
      make("header", {}, on, badge(line.origin), make("b", {}, line.kind), make("a", { class: "handle", href: `#e${overlay.id}` }, `e${overlay.id}`),
        make("span", { class: "fact" }, rule && rule !== line.origin ? `${line.origin}, ${firstLine(rule, 60)}` : line.origin), line.pass === overlay.id ? null : make("span", { class: "fact faint" }, `pass e${line.pass}`)),
      make("p", { class: "covers" }, covers(overlay)),
      why || size ? make("p", { class: "faint" }, [size, why].filter(Boolean).join(" · ")) : null,
      taken ? make("p", { class: "bad" }, "taken back by ", make("a", { class: "handle", href: `#e${overlay.retracted}` }, `e${overlay.retracted}`)) : null,
      lies && this.isRound ? this.idle(overlay, at) : null,
      make("button", { class: "quiet", click: () => look(overlay) }, "Show where"),
    ]);
    return row;
  },

  // That lifting a layer changes nothing, and why.
  idle(overlay, at) {
    const above = idle(overlay, at, state.lifted);
    if (above === null) return null;
    const names = above.slice(0, 4).map((other, place) => [place > 0 ? ", " : "", make("a", { class: "handle", href: `#e${other.id}` }, `e${other.id}`)]);
    const shown = above.every((other) => other.line.kind === "show");
    const why = above.length > 0 ? [shown ? " all it covers is shown by " : " all it covers lies beneath ", names, above.length > 4 ? " and others." : "."]
      : overlay.line.kind === "show" ? " nothing older lies on what it shows."
      : overlay.touched === 0 ? " it points at nothing." : " nothing of what it covers would read otherwise.";
    return make("p", { class: "idle" }, "Lifting it alone changes nothing:", why);
  },
};

// Why there is nothing to lift at a request that is not for a round.
const APART = {
  summary: "This request asked for a summary: it reads what is recorded, through no layer. Nothing can be lifted here.",
  combine: "This request combined summaries: it reads their texts as they were written, through no layer. Nothing can be lifted here.",
  repair: "This request is shown exactly as it was sent. Layers can be lifted at the rounds before and after it.",
};

// What an overlay covers, in words, with links to the first few.
function covers(overlay) {
  const line = overlay.line;
  const some = (ids, noun, plural) => {
    const links = ids.slice(0, 6).map((id) => [" ", make("a", { class: "handle", href: typeof id === "number" ? `#e${id}` : `#${id}` }, typeof id === "number" ? `e${id}` : id)]);
    return ids.length === 0 ? null : make("span", {}, many(ids.length, noun, plural), links, ids.length > 6 ? " …" : "");
  };
  if (line.kind === "stub") return [some(line.results.map(([call]) => call), "result"), " ", some(line.arguments ?? [], "call's arguments", "calls' arguments")];
  if (line.kind === "show") return some(line.calls, "call");
  if (line.kind === "summary") {
    const author = { model: "by a model", user: "by a person", rules: "by rules" }[line.by] ?? "";
    const depth = line.depth > 1 ? `, summed up ${line.depth} times` : "";
    return [`${author}${depth}, in the place of `, make("a", { class: "handle", href: `#e${line.span[0]}` }, `e${line.span[0]}`), " to ", make("a", { class: "handle", href: `#e${line.span[1]}` }, `e${line.span[1]}`), line.focus === undefined || run.text(line.reason).includes(run.text(line.focus)) ? "" : ` · focus: ${firstLine(run.text(line.focus), 120)}`];
  }
  return [
    some(line.calls ?? [], "call"), " ", some(line.reasoning ?? [], "reply's reasoning", "replies' reasoning"), " ",
    some((line.attachments ?? []).map(([entry]) => entry), "attachment"), " ",
    (line.rounds ?? []).length === 0 ? null : `rounds within ${line.rounds.map(([from, to]) => `e${from} to e${to}`).join(", ")}`,
  ];
}

