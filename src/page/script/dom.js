// Making what is seen. Text out of a transcript is only ever a text node or the value of a label:
// nothing here reads markup.

const byId = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";

// An element with attributes and children; children that are no elements become text. What is
// `null` or `false` is left out; functions listen.
function make(name, attributes = {}, ...children) {
  const svg = name.startsWith("svg:");
  const element = svg ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key, value);
    else element.setAttribute(key, value === true ? "" : plain(String(value)));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    if (child instanceof Node) element.append(child);
    else if (element.namespaceURI === SVG) element.append(plain(String(child)));
    else element.append(...seen(String(child)));
  }
  return element;
}

// What turns the direction of a text, steers a terminal or takes no place. Joiners and selectors of a
// form do so only where there is nothing that they could join or form.
const HIDDEN = /(?:[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]|\r(?!\n)|(?<![^\u0000-\u007f\u200c\u200d])[\u200c\u200d]|(?<![^\u0000-\u007f\u200d\ufe00-\ufe0f])[\ufe00-\ufe0f])+/gu;

// Most texts have nothing of it, which is seen at a glance.
const ALL_SEEN = /^[\t\n\u0020-\u007e\u00a1-\u00ac\u00ae-\u02ff]*$/;

const codes = (hidden) => {
  const some = [...hidden.slice(0, 16)].slice(0, 8);
  const named = some.map((sign) => sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")).join(" ");
  const rest = [...hidden].length - some.length;
  return `U+${named}${rest > 0 ? ` and ${rest} more` : ""}`;
};

// A text in which what hides is written out.
const plain = (text) => (ALL_SEEN.test(text) ? text : text.replace(HIDDEN, (hidden) => `⟨${codes(hidden)}⟩`));

// A text with a sign for what hides in it, which still holds it: it is copied and found as it is. Of
// very many, the rest is written out.
function seen(text) {
  if (ALL_SEEN.test(text)) return text === "" ? [] : [text];
  const parts = [];
  let end = 0;
  for (const { 0: hidden, index } of text.matchAll(HIDDEN)) {
    if (parts.length > 800) return [...parts, plain(text.slice(end))];
    if (index > end) parts.push(text.slice(end, index));
    const sign = document.createElement("span");
    sign.className = "sign";
    sign.setAttribute("data-sign", codes(hidden));
    sign.textContent = hidden;
    parts.push(sign);
    end = index + hidden.length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}

function fill(element, ...children) {
  element.textContent = "";
  return add(element, children);
}

const whole = new Intl.NumberFormat("en");
const count = (number) => whole.format(number);
const many = (number, noun, plural = noun + "s") => `${count(number)} ${number === 1 ? noun : plural}`;

// By how much a part is less than the whole: never all of it, nothing if that is next to nothing.
function less(part, all) {
  const share = 100 * (1 - part / Math.max(all, 1));
  if (share < 0.5) return "";
  return `${share > 99 ? Math.min(99.9, Math.floor(share * 10) / 10) : Math.round(share)} % less`;
}

// A number as short as a chart needs it: 950, 12.3k, 1.2M.
function short(number) {
  if (number < 1000) return String(Math.round(number));
  const [unit, size] = number < 999_500 ? ["k", 1e3] : number < 999.5e6 ? ["M", 1e6] : ["G", 1e9];
  const scaled = number / size;
  return (scaled < 100 ? scaled.toFixed(1).replace(/\.0$/, "") : String(Math.round(scaled))) + unit;
}

function money(micro) {
  const dollars = micro / 1e6;
  return "$" + (dollars >= 1 ? dollars.toFixed(2) : dollars.toFixed(dollars >= 0.01 ? 3 : 5));
}

function span(ms) {
  const seconds = Math.floor(ms / 1000);
  const two = (number) => String(number).padStart(2, "0");
  if (seconds < 1) return `${ms} ms`;
  if (seconds < 60) return `${(ms / 1000).toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h ${two(Math.floor(seconds / 60) % 60)}m`;
}

// A moment as the transcript writes it, to the second.
const moment = (at) => (Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : "").replace("T", " ").slice(0, 19);

const firstLine = (text, most) => {
  const line = text.slice(0, most * 4).trim().split("\n", 1)[0].replace(/\s+/g, " ");
  return line.length > most ? line.slice(0, most - 1) + "…" : line;
};

