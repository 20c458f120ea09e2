// Editor of the entities of one sentence after the other, for the page Label. All keys are handled here. Each answer is
// sent to the server, and sent again until the server says that it is stored. Until then it is also kept in this tab's
// session storage, without any text, so that a reload or a restart of the server loses nothing.
const IDLE = 120; // seconds: a longer pause is not work
const AGAIN = 3000; // milliseconds
const editors = new WeakMap(); // Streamlit calls the function below again for new data

const make = (tag, className, text, attributes = {}) => {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text ?? "";
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
};

class Editor {
  constructor(root, data, send) {
    Object.assign(this, { root, data, send, place: null, n: 0, spans: [], from: 0, to: 0, anchor: 0 });
    this.client = crypto.randomUUID();
    this.number = 0;
    this.store = `winnow.label.${data.run}.${data.annotator}`;
    this.outbox = JSON.parse(sessionStorage.getItem(this.store) ?? "[]");
    this.forget();
    this.build();
    this.read();
    this.listeners = {
      keydown: (event) => this.key(event),
      pointerup: () => (this.dragging = false),
      pointercancel: () => (this.dragging = false),
    };
    for (const [name, listener] of Object.entries(this.listeners)) document.addEventListener(name, listener);
    this.timer = setInterval(() => this.outbox.length && this.post(), AGAIN);
    this.show(this.next(-1));
    if (this.outbox.length) this.post();
  }

  end() {
    for (const [name, listener] of Object.entries(this.listeners)) document.removeEventListener(name, listener);
    clearInterval(this.timer);
  }

  update(data, send) {
    const types = JSON.stringify(this.data.types);
    Object.assign(this, { data, send });
    this.forget();
    this.read();
    if (JSON.stringify(data.types) !== types) this.drawTypes();
    // Another tab or an import may have answered this sentence.
    if (this.place === null ? this.next(-1) !== null : this.done.has(this.place)) this.show(this.next(this.place ?? -1));
    else this.draw();
  }

  // Read the answers of the server and those that it does not have yet.
  read() {
    this.done = new Map(Object.entries(this.data.answers).map(([place, answer]) => [Number(place), answer]));
    this.order = [...this.data.order];
    this.outbox.forEach((each) => this.apply(each));
  }

  // Answers

  apply({ action, place, entities }) {
    if (action === "reopen") this.done.delete(place);
    else {
      this.done.set(place, { action, entities });
      this.order.push(place);
    }
  }

  answer(action, place = this.place) {
    const entities = action === "reopen" ? [] : this.spans.map(({ from, to, type }) => [from, to + 1, type]);
    const seconds = action === "reopen" ? 0 : this.seconds();
    const { annotator } = this.data;
    const given = { action, place, entities, seconds, client: this.client, number: this.number++, annotator };
    this.apply(given);
    this.outbox.push(given);
    this.keep();
    this.post();
  }

  // Forget the answers that the server has. It may have changed since, such as by "Show flagged again".
  forget() {
    this.outbox = this.outbox.filter((each) => each.number > (this.data.stored[each.client] ?? -1));
    this.keep();
  }

  keep() {
    try {
      if (this.outbox.length) sessionStorage.setItem(this.store, JSON.stringify(this.outbox));
      else sessionStorage.removeItem(this.store);
    } catch {
      // Without storage, the answers are still sent until they are stored.
    }
  }

  post() {
    this.send("outbox", { answers: this.outbox, sent: Date.now() });
  }

  seconds() {
    const now = performance.now();
    this.spent += Math.min((now - this.seen) / 1000, IDLE);
    this.seen = now;
    return this.spent;
  }

  decide(action) {
    if (this.place === null) return;
    this.answer(action);
    this.show(this.next(this.place));
  }

  undo() {
    let place;
    do place = this.order.pop();
    while (place !== undefined && !this.done.has(place));
    if (place === undefined) return;
    const before = this.done.get(place);
    this.answer("reopen", place);
    this.show(place, before.action === "label" || before.entities.length ? before.entities : null);
  }

  next(after) {
    const n = this.data.tasks.length;
    for (let step = 1; step <= n; step++) if (!this.done.has((after + step) % n)) return (after + step) % n;
    return null;
  }

  // Selection. from, to: first and last token, both included.

  show(place, entities = null) {
    this.place = place;
    this.spent = 0;
    this.seen = performance.now();
    const task = place === null ? { places: [], spans: [] } : this.data.tasks[place];
    this.n = task.places.length;
    this.spans = (entities ?? task.spans).map(([from, to, type]) => ({ from, to: to - 1, type }));
    const first = this.spans[0];
    [this.from, this.to, this.anchor] = first ? [first.from, first.to, first.from] : [0, 0, 0];
    this.draw();
  }

  at(token) {
    return this.spans.find((span) => span.from <= token && token <= span.to);
  }

  active() {
    return this.spans.find((span) => span.from === this.from && span.to === this.to);
  }

  select(from, to = from) {
    [this.from, this.to, this.anchor] = [from, to, from];
    this.draw();
  }

  jump(token) {
    const span = this.at(token);
    if (span) this.select(span.from, span.to);
    else if (token >= 0 && token < this.n) this.select(token);
  }

  extend(token) {
    const [from, to] = [Math.min(this.anchor, token), Math.max(this.anchor, token)];
    // A new drawing puts another element under the mouse, which calls this again.
    if (token < 0 || token >= this.n || (from === this.from && to === this.to)) return;
    [this.from, this.to] = [from, to];
    this.draw();
  }

  border(start, step) {
    const span = this.active();
    if (!span) {
      const focus = this.anchor === this.from ? this.to : this.from;
      this.extend(focus + step);
      return;
    }
    const [from, to] = start ? [span.from + step, span.to] : [span.from, span.to + step];
    const taken = this.spans.some((other) => other !== span && other.from <= to && from <= other.to);
    if (from < 0 || to >= this.n || from > to || taken) return;
    Object.assign(span, { from, to });
    this.select(from, to);
  }

  label(index) {
    const type = this.data.types[index]?.name;
    if (!type || this.place === null || !this.n) return;
    this.spans = this.spans.filter((span) => span.to < this.from || this.to < span.from);
    this.spans.push({ from: this.from, to: this.to, type });
    this.spans.sort((a, b) => a.from - b.from);
    this.draw();
  }

  remove() {
    const gone = this.spans.filter((span) => span.from <= this.to && this.from <= span.to);
    this.spans = this.spans.filter((span) => !gone.includes(span));
    this.draw();
  }

  entity(step) {
    const others = this.spans.filter((span) => (step > 0 ? span.from > this.to : span.to < this.from));
    const span = step > 0 ? others[0] : others.at(-1);
    if (span) this.select(span.from, span.to);
  }

  // Keys count in the editor, and on the page while nothing else has the focus. A key that is held down counts once.
  key(event) {
    if (event.defaultPrevented || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const inside = event.composedPath().includes(this.root);
    if (!inside && event.target !== document.body) return;
    if (inside && event.key === "Enter" && event.composedPath()[0].tagName === "BUTTON") return;
    if (!this.handled(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  handled({ key, shiftKey }) {
    const rtl = getComputedStyle(this.text).direction === "rtl";
    const step = { ArrowRight: rtl ? -1 : 1, ArrowLeft: rtl ? 1 : -1 }[key];
    const small = key.toLowerCase();
    if (small === "u") this.undo();
    else if (this.place === null) return false;
    else if (step && shiftKey) this.border(false, step);
    else if (step) this.jump(step > 0 ? this.to + 1 : this.from - 1);
    else if (key === "ArrowUp" || key === "ArrowDown") {
      const way = key === "ArrowUp" ? -1 : 1;
      if (shiftKey) this.border(true, way);
      else this.entity(way);
    } else if (/^[0-9]$/.test(key)) this.label((Number(key) + 9) % 10);
    else if (key === "Backspace" || key === "Delete") this.remove();
    else if (key === "Enter") this.decide("label");
    else if (small === "s") this.decide("skip");
    else if (small === "f") this.decide("flag");
    else return false;
    return true;
  }

  // Drawing. Text is set as text, never as HTML. The elements stay, so that focus and screen readers keep their place.

  build() {
    this.head = make("p", "head");
    this.text = make("div", "text", "", { tabindex: "0", role: "group", dir: "auto", "aria-roledescription": "editor" });
    this.why = make("ul", "why", "", { "aria-label": "Reasons to check these labels" });
    this.kinds = make("div", "row", "", { role: "group", "aria-label": "Types" });
    this.live = make("p", "said", "", { "aria-live": "polite" });
    const row = make("div", "row");
    const actions = [
      ["Enter", "↵", "Accept", () => this.decide("label")],
      ["Backspace", "⌫", "Remove entity", () => this.remove()],
      ["s", "S", "Skip", () => this.decide("skip")],
      ["f", "F", "Flag", () => this.decide("flag")],
      ["u", "U", "Undo", () => this.undo()],
    ];
    this.buttons = new Map();
    for (const [key, sign, name, act] of actions) {
      const button = make("button", key === "Enter" ? "primary" : "", "", { type: "button", "aria-keyshortcuts": key });
      button.append(make("kbd", "", sign), name);
      button.onclick = act;
      this.buttons.set(key, button);
      row.append(button);
    }
    this.root.append(this.head, this.text, this.why, this.kinds, row, this.live);
    this.drawTypes();
  }

  drawTypes() {
    const buttons = this.data.types.map(({ name, colour }, index) => {
      const button = make("button", "kind", "", { type: "button" });
      button.style.setProperty("--c", colour);
      if (index < 10) button.append(make("kbd", "", String((index + 1) % 10)));
      button.append(name);
      button.onclick = () => this.label(index);
      return button;
    });
    this.kinds.replaceChildren(...buttons);
  }

  draw() {
    const over = this.place === null;
    const left = this.data.tasks.length - this.done.size;
    const unsent = this.outbox.length > 1 ? `${this.outbox.length} answers not stored yet` : "";
    const { text, place, places } = over ? { text: "", place: "", places: [] } : this.data.tasks[this.place];
    const number = over ? "Every sentence has an answer" : `Sentence ${this.place + 1}`;
    this.head.textContent = [number, over ? "" : `${left} left`, place, unsent].filter(Boolean).join(" · ");
    this.text.setAttribute("aria-label", over ? number : `${number} of ${this.data.tasks.length}: ${text}`);
    this.text.replaceChildren(...(over ? ["Every sentence has an answer."] : this.words(text, places)));
    this.why.replaceChildren(...(over ? [] : this.data.tasks[this.place].why).map((reason) => make("li", "", reason)));
    this.why.hidden = !this.why.children.length;
    for (const [key, button] of this.buttons) button.disabled = key === "u" ? !this.order.length : over;
    this.live.textContent = over ? number : this.spoken(text, places);
  }

  words(text, places) {
    const parts = [];
    let at = 0;
    let mark = null;
    places.forEach(([start, end], token) => {
      const span = this.at(token);
      const gap = document.createTextNode(text.slice(at, start));
      if (span && token > span.from) mark.append(gap);
      else parts.push(gap);
      if (span && token === span.from) {
        mark = make("mark", this.active() === span ? "active" : "");
        mark.style.setProperty("--c", this.data.types.find(({ name }) => name === span.type)?.colour ?? "gray");
        parts.push(mark);
      }
      const word = make("span", this.from <= token && token <= this.to ? "token on" : "token", text.slice(start, end));
      word.onpointerdown = (event) => this.press(event, token);
      word.onpointerenter = () => this.dragging && this.extend(token);
      if (span) mark.append(word);
      else parts.push(word);
      if (span && token === span.to) mark.append(make("small", "", span.type));
      at = end;
    });
    return [...parts, document.createTextNode(text.slice(at))];
  }

  press(event, token) {
    event.preventDefault(); // no text selection of the browser
    event.target.releasePointerCapture?.(event.pointerId); // else a finger would stay on its first word
    this.text.focus();
    const span = this.at(token);
    this.dragging = true;
    if (event.shiftKey) this.extend(token);
    else if (span) this.select(span.from, span.to);
    else this.select(token);
  }

  spoken(text, places) {
    if (!places.length) return "";
    const words = text.slice(places[this.from][0], places[this.to][1]);
    return `${words}, ${this.active()?.type ?? "no entity"}`;
  }
}

export default function ({ data, parentElement, setStateValue }) {
  const known = editors.get(parentElement);
  if (known?.data.run === data.run && known.data.annotator === data.annotator) {
    known.update(data, setStateValue);
  } else {
    known?.end();
    parentElement.querySelector(".w-label")?.remove();
    const root = make("div", "w-label");
    parentElement.append(root);
    editors.set(parentElement, new Editor(root, data, setStateValue));
  }
  return () => {
    editors.get(parentElement)?.end();
    editors.delete(parentElement);
  };
}
