// Tooltips of a chart's points. Their text is loaded after the chart, so that the chart need not wait for it. It is set
// as text, never as HTML.
const ends = new WeakMap(); // Streamlit calls this function again for new data, and cleans up only after the last call

export default function ({ data, parentElement }) {
  ends.get(parentElement)?.();
  const { chart, points, lines } = JSON.parse(new TextDecoder().decode(data));
  const line = new Map(points.map((point, i) => [point, lines[i]]));
  const tip = document.createElement("div");
  tip.className = "w-tip";
  tip.role = "tooltip";
  tip.dir = "auto";
  let plot = null;

  const hide = () => tip.remove();
  const show = ({ event, points: [{ customdata, fullData }] }) => {
    // Plotly delays its hover event. If the mouse has left by then, no unhover event would hide the tooltip.
    if (!line.has(customdata) || !plot.matches(":hover")) return hide();
    const colour = fullData.marker.color;
    tip.textContent = line.get(customdata);
    tip.style.setProperty("--c", typeof colour === "string" ? colour : "#8F8F8F");
    plot.closest(".stApp").append(tip);
    const { width, height } = tip.getBoundingClientRect();
    const above = event.clientY + height + 24 > innerHeight;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
    tip.style.top = `${Math.max(8, event.clientY + (above ? -height - 14 : 16))}px`;
  };
  const unbind = () => {
    plot?.removeEventListener("pointerleave", hide);
    plot?.removeListener?.("plotly_hover", show);
    plot?.removeListener?.("plotly_unhover", hide);
    hide();
  };
  const bind = () => {
    const drawn = document.querySelector(`.st-key-${chart} .js-plotly-plot`);
    if (!drawn?.on || drawn === plot) return;
    unbind();
    plot = drawn;
    plot.addEventListener("pointerleave", hide);
    plot.on("plotly_hover", show);
    plot.on("plotly_unhover", hide);
  };
  const end = () => {
    document.removeEventListener("pointerover", bind);
    unbind();
  };

  document.addEventListener("pointerover", bind); // a redrawn chart is a new element
  bind();
  ends.set(parentElement, end);
  return end;
}
