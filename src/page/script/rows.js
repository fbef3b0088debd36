// A list of which only what can be seen stands in the page. Heights are guessed until a row was seen
// once; what the reader looks at stays where it is when a guess above it turns out wrong.

class Rows {
  // `make(row, place)` makes a row's element; `guess(row)` its height; `key(row)` names it.
  constructor(scroller, { make, guess, key, label, role = "list" }) {
    Object.assign(this, { scroller, makeRow: make, guess, key });
    this.rows = [];
    this.heights = [];
    this.known = new Map();
    this.seen = new Map();
    this.space = add(make0("rows"), []);
    this.space.setAttribute("role", role);
    if (label) this.space.setAttribute("aria-label", label);
    this.window = make0("window");
    this.space.append(this.window);
    fill(scroller, this.space);
    this.waiting = false;
    scroller.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.resized()).observe(scroller);
  }

  resized() {
    const width = this.scroller.clientWidth;
    if (width !== this.width) {
      this.width = width;
      this.known.clear();
      this.guessAll();
      this.anew();
    }
    this.soon();
  }

  // Shows other rows. What stood at the top stays there if it is still among them and `keep` says so.
  set(rows, { keep = true } = {}) {
    const anchor = keep ? this.anchor() : null;
    const focus = this.focused();
    this.rows = rows;
    this.guessAll();
    this.anew();
    if (anchor) this.restore(anchor);
    else this.scroller.scrollTop = 0;
    this.draw();
    this.refocus(focus);
  }

  // Where the keyboard is, in which row and on what; it is there again after rows were made anew.
  focused() {
    const active = document.activeElement;
    for (const [key, element] of this.seen) {
      if (!element.contains(active)) continue;
      return { key, place: element === active ? -1 : [...element.querySelectorAll("button, a")].indexOf(active) };
    }
    return null;
  }

  refocus(focus) {
    if (!focus) return;
    const element = this.seen.get(focus.key);
    const inside = element ? [...element.querySelectorAll("button, a")] : [];
    const target = focus.place < 0 ? element : inside[Math.min(focus.place, inside.length - 1)];
    (target ?? this.scroller).focus({ preventScroll: true });
  }

  // Rows are made again when they are next drawn.
  anew() {
    for (const element of this.seen.values()) element.remove();
    this.seen.clear();
  }

  guessAll() {
    this.heights = this.rows.map((row) => this.known.get(this.key(row)) ?? this.guess(row));
    this.measure();
  }

  // Where each row begins.
  measure() {
    const tops = new Float64Array(this.rows.length + 1);
    for (let place = 0; place < this.rows.length; place += 1) tops[place + 1] = tops[place] + this.heights[place];
    this.tops = tops;
    this.space.style.height = `${tops[this.rows.length]}px`;
  }

  // The row at a height.
  at(height) {
    let low = 0;
    let high = Math.max(0, this.rows.length - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= height) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  anchor() {
    if (this.rows.length === 0) return null;
    const place = this.at(this.scroller.scrollTop);
    return { key: this.key(this.rows[place]), place, within: this.scroller.scrollTop - this.tops[place] };
  }

  restore(anchor) {
    let place = this.rows[anchor.place] && this.key(this.rows[anchor.place]) === anchor.key ? anchor.place : -1;
    if (place < 0) place = this.rows.findIndex((row) => this.key(row) === anchor.key);
    if (place >= 0) this.scroller.scrollTop = this.tops[place] + anchor.within;
  }

  soon() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.draw();
    });
  }

  draw() {
    if (this.scroller.clientHeight === 0) return;
    // A wrong guess may bring other rows into sight: twice is enough for most, thrice for all.
    for (let again = 0; again < 4; again += 1) if (!this.drawOnce()) break;
    this.drawn?.();
  }

  drawOnce() {
    const anchor = this.anchor();
    const top = this.scroller.scrollTop;
    const reach = this.scroller.clientHeight;
    const first = this.at(Math.max(0, top - reach / 2));
    const last = Math.min(this.rows.length - 1, this.at(top + reach * 1.5));
    const wanted = new Set();
    let before = null;
    for (let place = first; place <= last && place < this.rows.length; place += 1) {
      const row = this.rows[place];
      const key = this.key(row);
      wanted.add(key);
      let element = this.seen.get(key);
      if (!element) {
        element = this.makeRow(row, place);
        if (element.getAttribute("role") === "listitem") {
          element.setAttribute("aria-setsize", this.rows.length);
          element.setAttribute("aria-posinset", place + 1);
        }
        this.seen.set(key, element);
      }
      const next = before ? before.nextSibling : this.window.firstChild;
      if (next !== element) this.window.insertBefore(element, next);
      before = element;
    }
    for (const [key, element] of this.seen) {
      if (wanted.has(key)) continue;
      element.remove();
      this.seen.delete(key);
    }
    this.window.style.transform = `translateY(${this.tops[first] ?? 0}px)`;
    let changed = false;
    for (let place = first; place <= last && place < this.rows.length; place += 1) {
      const key = this.key(this.rows[place]);
      const height = this.seen.get(key).getBoundingClientRect().height;
      if (Math.abs(height - this.heights[place]) > 0.5) {
        this.heights[place] = height;
        changed = true;
      }
      this.known.set(key, height);
    }
    if (!changed) return false;
    this.measure();
    this.restore(anchor);
    this.window.style.transform = `translateY(${this.tops[first] ?? 0}px)`;
    return true;
  }

  // Makes one row again.
  again(key) {
    const focus = this.focused();
    this.seen.get(key)?.remove();
    this.seen.delete(key);
    this.draw();
    this.refocus(focus);
  }

  // Brings a row into sight, near the top unless it is in sight; returns its element.
  show(key, { top = true } = {}) {
    const place = this.rows.findIndex((row) => this.key(row) === key);
    if (place < 0) return null;
    for (let again = 0; again < 3; again += 1) {
      const [from, to] = [this.tops[place], this.tops[place + 1]];
      const view = this.scroller.scrollTop;
      const inSight = from >= view && to <= view + this.scroller.clientHeight;
      if (!inSight) {
        const room = this.scroller.clientHeight - (to - from);
        this.scroller.scrollTop = top ? from - 12 : Math.max(0, from - Math.max(0, room / 2));
      }
      this.draw();
    }
    return this.seen.get(key) ?? null;
  }

  get atEnd() {
    return this.scroller.scrollTop + this.scroller.clientHeight >= this.scroller.scrollHeight - 24;
  }
}

const make0 = (name) => make("div", { class: name });

