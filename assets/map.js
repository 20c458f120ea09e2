// Report what Streamlit does not: the visible range, so that a redrawn map keeps it, clicks on points while the mouse
// draws lassos, and clicks on the legend, which filter map and table.
export default function ({ data, setStateValue, setTriggerValue }) {
  let plot = null;
  let sent = "";

  const looked = () => {
    const { xaxis, yaxis } = plot._fullLayout;
    const zoom = xaxis.autorange && yaxis.autorange ? null : [...xaxis.range, ...yaxis.range];
    if (JSON.stringify(zoom) === sent) return;
    sent = JSON.stringify(zoom);
    setStateValue("zoom", zoom);
  };
  const clicked = (event) => {
    if (!plot._fullLayout.clickmode.includes("select")) setTriggerValue("click", event.points[0].customdata);
  };
  // Streamlit would send every point inside a lasso, 130 bytes each. The server needs only the outline.
  const selected = (event) => {
    if (event?.lassoPoints || event?.range) event.points = [];
  };
  const legend = (event) => {
    const { meta } = event.data[event.curveNumber];
    if (meta) setTriggerValue("legend", meta);
    return false; // Plotly would hide the points
  };
  const bind = () => {
    const found = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!found?.on || found === plot) return;
    plot = found;
    sent = JSON.stringify(plot._fullLayout?.xaxis?.autorange ? null : sent);
    const listeners = { relayout: looked, click: clicked, legendclick: legend, legenddoubleclick: () => false };
    for (const [name, listener] of Object.entries(plot.winnow ?? {})) plot.removeListener(`plotly_${name}`, listener);
    for (const [name, listener] of Object.entries(listeners)) plot.on(`plotly_${name}`, listener);
    plot._ev.removeListener("plotly_selected", plot.outlined ?? selected);
    plot._ev.prependListener("plotly_selected", selected);
    plot.outlined = selected;
    plot.winnow = listeners; // Streamlit may call this function again, and a legend that answers twice undoes its click
  };

  const watcher = new MutationObserver(bind);
  watcher.observe(document.body, { childList: true, subtree: true });
  bind();
  return () => watcher.disconnect();
}
