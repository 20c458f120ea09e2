// Report two things that Streamlit does not: the visible range, so that a redrawn map keeps it, and clicks on points
// while the mouse draws lassos.
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
  const bind = () => {
    const found = document.querySelector(`.st-key-${data.chart} .js-plotly-plot`);
    if (!found?.on || found === plot) return;
    plot = found;
    sent = JSON.stringify(plot._fullLayout?.xaxis?.autorange ? null : sent);
    plot.on("plotly_relayout", looked);
    plot.on("plotly_click", clicked);
  };

  const watcher = new MutationObserver(bind);
  watcher.observe(document.body, { childList: true, subtree: true });
  bind();
  return () => watcher.disconnect();
}
