// Names of small groups on an enlarged map. They are elements above the chart and not annotations of it, because
// Plotly lays all annotations out again at every step of a zoom. A name is set as text, never as HTML.
const NEAR = 16; // pixels: least standard deviation of the smoothing behind a level for its names to be shown
const ends = new WeakMap(); // Streamlit calls this function again for new data, and cleans up only after the last call

const LIFT = 12; // pixels: a name is above the densest place of its group, so that it covers fewer points

const apart = (a, b) => a.left > b.right || b.left > a.right || a.top > b.bottom || b.top > a.bottom;
const boxAt = (x, y, { width, height }) => ({
  left: x - width / 2,
  right: x + width / 2,
  top: y - height / 2,
  bottom: y + height / 2,
});

export default function ({ data, parentElement }) {
  ends.get(parentElement)?.();
  const { chart, spans, levels } = data;
  const layer = document.createElement("div");
  layer.className = "w-names";
  layer.ariaHidden = "true"; // the table has the same sentences
  let plot = null;
  let drawn = { level: -1, across: 0, up: 0, names: [] }; // pixels per unit of the map, and the names of the level

  // Return the elements of a level with their sizes, which the browser measures once.
  const elementsOf = (level) => {
    const names = (levels[level]?.names ?? []).map(({ x, y, text }) => {
      const element = document.createElement("span");
      element.textContent = text;
      element.dir = "auto";
      return { x, y, element };
    });
    layer.replaceChildren(...names.map(({ element }) => element));
    return names.map((name) => ({ ...name, width: name.element.offsetWidth, height: name.element.offsetHeight }));
  };
  // Hide each name that would cover a larger group's name. Where the window is does not matter, so that no name
  // appears or vanishes while the map is moved.
  const fit = ({ names, across, up }) => {
    const taken = [];
    for (const name of names) {
      const box = boxAt(name.x * across, -name.y * up - LIFT, name);
      const free = taken.every((other) => apart(box, other));
      name.element.hidden = !free;
      if (free) taken.push(box);
    }
  };
  const place = () => {
    const { xaxis, yaxis } = plot._fullLayout ?? {};
    if (!xaxis?._length) return;
    if (layer.parentElement !== plot) plot.append(layer);
    const [[left, right], [low, high]] = [xaxis.range, yaxis.range];
    const across = xaxis._length / (right - left);
    const up = yaxis._length / (high - low);
    const near = Math.min(spans[0] * across, spans[1] * up);
    const level = levels.findLastIndex(({ width }) => width * near >= NEAR);
    const other = level !== drawn.level;
    if (other || Math.abs(across / drawn.across - 1) > 1e-6 || Math.abs(up / drawn.up - 1) > 1e-6) {
      drawn = { level, across, up, names: other ? elementsOf(level) : drawn.names };
      fit(drawn);
    }
    Object.assign(layer.style, {
      left: `${xaxis._offset}px`,
      top: `${yaxis._offset}px`,
      width: `${xaxis._length}px`,
      height: `${yaxis._length}px`,
    });
    const corner = layer.getBoundingClientRect();
    const topics = [...plot.querySelectorAll(".annotation-text-g")].map((topic) => {
      const box = topic.getBoundingClientRect();
      return {
        left: box.left - corner.left,
        right: box.right - corner.left,
        top: box.top - corner.top,
        bottom: box.bottom - corner.top,
      };
    });
    for (const name of drawn.names) {
      const { x, y, element } = name;
      if (element.hidden) continue;
      const box = boxAt((x - left) * across, (high - y) * up - LIFT, name);
      const free = topics.every((topic) => apart(box, topic));
      element.style.visibility = free ? "visible" : "hidden";
      element.style.transform = `translate(${box.left}px, ${box.top}px)`;
    }
  };
  const events = ["plotly_afterplot", "plotly_relayouting", "plotly_relayout"];
  const unbind = () => {
    for (const event of events) plot?.removeListener?.(event, place);
    layer.remove();
  };
  const bind = () => {
    const found = document.querySelector(`.st-key-${chart} .js-plotly-plot`);
    if (!found?.on || found === plot) return;
    unbind();
    plot = found;
    for (const event of events) plot.on(event, place);
    place();
  };
  const watcher = new MutationObserver(bind); // a redrawn chart is a new element
  const end = () => {
    watcher.disconnect();
    unbind();
  };

  watcher.observe(document.body, { childList: true, subtree: true });
  bind();
  ends.set(parentElement, end);
  return end;
}
