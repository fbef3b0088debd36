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
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

function fill(element, ...children) {
  element.textContent = "";
  return add(element, children);
}

const whole = new Intl.NumberFormat("en");
const count = (number) => whole.format(number);
const many = (number, noun, plural = noun + "s") => `${count(number)} ${number === 1 ? noun : plural}`;

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

