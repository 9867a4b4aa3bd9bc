"use strict";

function draw(plot) {
  const { data, layout } = JSON.parse(plot.firstElementChild.textContent);
  plot.replaceChildren();
  if (plot.clientWidth < 200) data.forEach(trace => delete trace.texttemplate);  // no room for numbers
  const bar = plot.closest(".grid") ? false : "hover";
  return Plotly.newPlot(plot, data, layout, {
    responsive: true, displaylogo: false, displayModeBar: bar, modeBarButtons: [["toImage"]],
  });
}

function toggle(button) {
  const section = button.closest("section"), group = button.dataset.group;
  const visible = button.getAttribute("aria-pressed") === "false";
  section.querySelectorAll(`button[data-group="${group}"]`).forEach(b => b.setAttribute("aria-pressed", visible));
  section.querySelectorAll(".plot").forEach(plot => {
    const traces = (plot.data || []).flatMap((trace, place) => trace.legendgroup === group ? [place] : []);
    if (traces.length) Plotly.restyle(plot, { visible }, traces);
  });
}

document.addEventListener("click", event => {
  const button = event.target.closest("button[data-group]");
  if (button) toggle(button);
});

(async () => {  // one by one, what is nearest to the window first, so that the page can be read meanwhile
  const left = new Set(document.querySelectorAll(".plot"));
  const distance = plot => Math.abs(plot.getBoundingClientRect().top - innerHeight / 2);
  while (left.size) {
    const next = [...left].reduce((best, plot) => distance(plot) < distance(best) ? plot : best);
    left.delete(next);
    await draw(next);
    await new Promise(done => setTimeout(done));
  }
  document.documentElement.dataset.drawn = "all";
})();
