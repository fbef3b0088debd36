// The algebra of overlays: for each content the strongest opinion wins, shown < stubbed < hidden <
// summarised; among equals the newest. What is retracted or lifted has no opinion, and what points
// at nothing that was there when it was laid has none either.

// Lays an overlay on what there is.
function lay(overlay) {
  const line = overlay.line;
  const on = (id, kind, text) => {
    const call = run.call(id);
    if (!call || (kind === "result" && !call.result)) return;
    call.layers.push({ overlay, kind, text });
    overlay.touched += 1;
  };
  const cover = (covers) => {
    if (!covers || covers.includes(overlay)) return;
    covers.push(overlay);
    overlay.touched += 1;
  };
  if (line.kind === "stub") {
    for (const [call, text] of line.results) on(call, "result", text);
    for (const call of line.arguments ?? []) on(call, "arguments");
  } else if (line.kind === "show") {
    for (const call of line.calls) on(call, "show");
  } else if (line.kind === "summary") {
    for (const item of run.within(...line.span)) cover(item.covers);
  } else {
    for (const call of line.calls ?? []) on(call, "hide");
    for (const id of line.reasoning ?? []) cover(run.byItem.get(id)?.reasoning);
    for (const [id, place] of line.attachments ?? []) cover(run.byItem.get(id)?.attachments?.[place - 1]);
    for (const span of line.rounds ?? []) for (const item of run.within(...span)) cover(item.hidden);
  }
}

// Who stands at a moment: laid before it, not taken back before it, not lifted.
const standing = (at, lifted) => (overlay) =>
  overlay.id < at && !(overlay.retracted && overlay.retracted < at) && !lifted.has(overlay.id);

const newest = (overlays, stands) => {
  for (let place = overlays.length - 1; place >= 0; place -= 1) {
    if (stands(overlays[place])) return overlays[place];
  }
  return null;
};

// How a call reads: its arguments and its result, each in full (`null`), stubbed or hidden.
function callReads(call, stands) {
  let shown = 0;
  let hidden = null;
  let result = null;
  let emptied = null;
  for (const layer of call.layers) {
    const id = layer.overlay.id;
    if (!stands(layer.overlay)) continue;
    if (layer.kind === "show") shown = Math.max(shown, id);
    else if (layer.kind === "hide") hidden = layer.overlay;
    else if (layer.kind === "result") result = layer;
    else emptied = layer.overlay;
  }
  const counts = (overlay) => overlay !== null && overlay.id > shown;
  return {
    hidden: counts(hidden) ? hidden : null,
    result: result && counts(result.overlay) ? result : null,
    emptied: counts(emptied) ? emptied : null,
  };
}

// Why lifting an overlay alone changes nothing: the overlays that read in its place wherever it lies,
// none of them if there is nothing for it to change; `null` if it does change something.
function idle(overlay, at, lifted = new Set()) {
  const stands = standing(at, lifted);
  const line = overlay.line;
  const others = new Set();
  // Whether a content reads by this overlay; if not, by which other.
  const mine = (other) => {
    if (other && other !== overlay) others.add(other);
    return other === overlay;
  };
  const covering = (item) => newest(item.covers, stands) ?? (item.hidden ? newest(item.hidden, stands) : null);
  const within = (span, covers) =>
    run.within(...span).some((item) => item[covers]?.includes(overlay) && mine(covers === "covers" ? newest(item.covers, stands) : covering(item)));
  const callBy = (id, kind) => {
    const call = run.call(id);
    const item = run.byItem.get(parts(id)[0]);
    if (!call || !call.layers.some((layer) => layer.overlay === overlay && layer.kind === kind)) return false;
    const above = covering(item);
    if (above) return mine(above);
    if (kind === "show") return shows(overlay, call, stands, others);
    const reads = callReads(call, stands);
    const by = reads.hidden ?? (kind === "arguments" ? reads.emptied : reads.result?.overlay) ?? null;
    if (kind === "arguments" && run.texts[call.call.arguments] === "{}") return false;
    return mine(by ?? newest(call.layers.filter((layer) => layer.kind === "show").map((layer) => layer.overlay), stands));
  };
  const part = (id, covers) => {
    const item = run.byItem.get(id);
    return Boolean(item && covers(item)?.includes(overlay)) && mine(covering(item) ?? newest(covers(item), stands));
  };
  const effect = {
    stub: () => line.results.some(([id]) => callBy(id, "result")) || (line.arguments ?? []).some((id) => callBy(id, "arguments")),
    show: () => line.calls.some((id) => callBy(id, "show")),
    summary: () => within(line.span, "covers"),
    hide: () =>
      (line.calls ?? []).some((id) => callBy(id, "hide")) ||
      (line.reasoning ?? []).some((id) => part(id, (item) => item.reasoning)) ||
      (line.attachments ?? []).some(([id, place]) => part(id, (item) => item.attachments?.[place - 1])) ||
      (line.rounds ?? []).some((span) => within(span, "hidden")),
  }[line.kind];
  return effect() ? null : [...others].sort((one, other) => one.id - other.id);
}

// Whether something that stands under a show would read without it.
function shows(overlay, call, stands, others) {
  const before = (layer) => stands(layer.overlay) && layer.overlay !== overlay;
  const other = Math.max(0, ...call.layers.filter((layer) => layer.kind === "show" && before(layer)).map((layer) => layer.overlay.id));
  if (other > overlay.id) others.add(run.byOverlay.get(other));
  return call.layers.some((layer) => layer.kind !== "show" && before(layer) && layer.overlay.id < overlay.id && layer.overlay.id > other);
}

// The messages as they read at a moment, with the seams where something is left out. A message is
// `{of, role, …}`; a seam is `{seam, items, calls}`.
function reading(at, lifted = new Set()) {
  const stands = standing(at, lifted);
  const before = run.items.slice(0, firstAt(run.items, at));
  const rows = [];
  const placed = new Map();
  for (const item of before) {
    const summary = newest(item.covers, stands);
    if (summary) {
      let row = placed.get(summary);
      if (!row) {
        row = { of: `s${summary.id}`, role: "u", overlay: summary, text: summary.line.text, items: [], by: {} };
        placed.set(summary, row);
        rows.push(row);
      }
      row.items.push(item);
      continue;
    }
    const hidden = item.hidden ? newest(item.hidden, stands) : null;
    if (hidden) seam(rows, hidden, { item });
    else if (item.kind === "user") rows.push(...userRow(item, stands));
    else rows.push(...replyRows(item, stands, at));
  }
  between(rows, placed, at);
  return rows;
}

// Where items or calls are left out: neighbours by one overlay are one seam.
function seam(rows, overlay, { item = null, call = null }) {
  let row = rows[rows.length - 1];
  if (row?.seam !== overlay) {
    row = { seam: overlay, of: `h${overlay.id}-${(item ?? call).id}`, items: [], calls: [] };
    rows.push(row);
  }
  if (item) row.items.push(item);
  if (call) row.calls.push(call);
}

function userRow(item, stands) {
  const without = [];
  const by = {};
  item.attachments.forEach((covers, index) => {
    const hidden = newest(covers, stands);
    if (!hidden) return;
    without.push(index + 1);
    by[`attachment ${index + 1}`] = hidden.id;
  });
  if (item.attachments.length === 0 && run.chars(item.line.text) === 0) return [];
  return [{ of: `e${item.id}`, role: "u", item, without, by }];
}

function replyRows(item, stands, at) {
  const by = {};
  const calls = [];
  const gone = [];
  const emptied = [];
  item.calls.forEach((call, index) => {
    const reads = callReads(call, stands);
    if (reads.hidden) {
      by[`call ${index + 1}`] = reads.hidden.id;
      gone.push([reads.hidden, call]);
      return;
    }
    calls.push({ call, reads, place: index + 1 });
    if (reads.emptied && run.texts[call.call.arguments] !== "{}") {
      emptied.push(index + 1);
      by[`arguments ${index + 1}`] = reads.emptied.id;
    }
  });
  const correction = newest(item.corrections, (line) => line.id < at);
  const line = correction ?? item.line;
  const rows = [];
  if (calls.length > 0 || run.chars(line.text) > 0) {
    const row = { of: `e${item.id}`, role: "a", item, line, emptied, by, correction: correction?.id };
    if (gone.length > 0) row.calls = calls.map((call) => call.place);
    row.shown = calls;
    row.gone = gone;
    thoughts(row, item, line, stands, at);
    rows.push(row);
  } else {
    for (const [overlay, call] of gone) seam(rows, overlay, { call });
  }
  for (const { call, reads, place } of calls) {
    const open = !call.result || call.result.id >= at;
    const row = { of: call.id, role: "t", item, call, place, open, by: {} };
    if (!open && reads.result) {
      row.text = reads.result.text;
      row.overlay = reads.result.overlay;
      row.by.result = reads.result.overlay.id;
    }
    rows.push(row);
  }
  return rows;
}

// The reasoning that reads: none if it is hidden, what is not opaque if another model is asked.
function thoughts(row, item, line, stands, at) {
  const all = line.reasoning ?? [];
  if (all.length === 0) return;
  const hidden = newest(item.reasoning, stands);
  if (hidden) {
    row.reasoning = 0;
    row.by.reasoning = hidden.id;
    row.thoughts = [];
    return;
  }
  const [maker, now] = [run.setup(line.request), run.setup(at)];
  const own = !maker || !now || maker.maker === now.maker;
  row.thoughts = own ? all : all.filter((block) => !block.opaque);
  if (row.thoughts.length !== all.length) row.reasoning = row.thoughts.length;
}

// After the last summary: what the newest one carries, and the assistant's word before a user.
function between(rows, placed) {
  const last = rows.findLastIndex((row) => placed.get(row.overlay) === row);
  if (last < 0) return;
  let carrier = null;
  for (const overlay of placed.keys()) if (!carrier || overlay.id > carrier.id) carrier = overlay;
  const more = [];
  if (carrier.line.carry !== undefined) {
    more.push({ of: `y${carrier.id}`, role: "u", carries: carrier, text: carrier.line.carry, by: {} });
  }
  const next = rows.slice(last + 1).find((row) => !row.seam);
  if (next?.role === "u") more.push({ of: "k", role: "a", understood: true, by: {} });
  rows.splice(last + 1, 0, ...more);
}

// A message in a form in which two can be compared: what it comes from and what of it does not read
// as it is recorded. With the overlays that did so, if they are to be compared as well.
function form(message) {
  const { of, calls, emptied, reasoning, correction, without } = message;
  let text = message.text;
  if (of === "k") text = "";
  else if (message.open) text = run.interrupted();
  const by = Object.entries(message.by ?? {}).filter(([part]) => {
    const [what, place] = part.split(" ");
    return what !== "arguments" || (emptied ?? []).includes(Number(place));
  });
  by.sort(([one], [other]) => (one < other ? -1 : 1));
  return JSON.stringify([
    of, text ?? "", calls ?? "", emptied ?? [], message.arguments ?? [], reasoning ?? "", correction ?? "", without ?? [], by,
  ]);
}

// Where the messages that the algebra makes of a round's request are not the ones that were sent.
function difference(request) {
  const sent = list.of(request);
  const read = reading(request.id).filter((row) => !row.seam);
  const most = Math.max(sent.length, read.length);
  for (let place = 0; place < most; place += 1) {
    const [one, other] = [sent[place], read[place]];
    if (one && !one.form) one.form = form(one);
    if (one && other && one.form === form(other)) continue;
    const name = (message) => (message ? message.of : "none");
    return `e${request.id}, message ${place + 1}: sent ${name(one)}, layers give ${name(other)}`;
  }
  return null;
}

