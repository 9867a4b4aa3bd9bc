"use strict";

/* The progress of an update */

const STAGES = {
  starting: "Starting: the network is loaded.",
  reading: "Reading the photos.",
  learning: "The network looks at each photo, and learns from it.",
  testing: "Testing it on photos that it has not learnt, and saving it.",
};

function followProgress(box) {
  const source = new EventSource(box.dataset.events);
  const points = [];
  const losses = [];
  let stage = "";
  source.addEventListener("progress", (event) => {
    const facts = JSON.parse(event.data);
    const now = facts.stage === "learning" && facts.done >= 1 ? "testing" : facts.stage;
    if (now !== stage) {
      stage = now;
      points.length = 0;
      find("#stage").textContent = STAGES[stage] || stage;
    }
    points.push(facts);
    showProgress(stage, points, losses);
  });
  source.addEventListener("epoch", (event) => {
    losses.push(JSON.parse(event.data).loss);
    drawLosses(losses);
  });
  source.addEventListener("end", () => { source.close(); location.reload(); });
  source.addEventListener("error", async () => {
    if (source.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
    find("#stage").textContent = LOCKED;
    await untilBack();
    location.reload();
  });
}

function showProgress(stage, points, losses) {
  const known = stage === "reading" || stage === "learning";
  if (known) find("#bar").value = points.at(-1).done;
  else find("#bar").removeAttribute("value");
  find("#left").textContent = known ? timeLeft(points) : "";
  if (known && !losses.length) drawShare(points);
}

function timeLeft(points) {
  const last = points.at(-1);
  const passed = last.time - points[0].time;
  const part = last.done - points[0].done;
  if (passed < 1 || part <= 0) return "";
  const seconds = Math.ceil(passed * (1 - last.done) / part);
  return seconds < 90 ? `about ${seconds} seconds left` : `about ${Math.round(seconds / 60)} minutes left`;
}

function drawShare(points) {
  if (points.length < 3) return;
  const first = points[0].time;
  const span = Math.max(points.at(-1).time - first, 1);
  drawCurve(points.map((one) => [(one.time - first) / span, one.done]));
  find("#curve-text").textContent = `Share of the photos that are done, over time: ${Math.round(100 * points.at(-1).done)} %.`;
}

function drawLosses(losses) {
  const highest = Math.max(...losses, 1e-9);
  drawCurve(losses.map((loss, at) => [at / Math.max(losses.length - 1, 1), Math.max(0, loss) / highest]));
  const last = losses.at(-1).toFixed(2);
  const text = losses.length > 1 ? `from ${losses[0].toFixed(2)} to ${last}` : last;
  find("#curve-text").textContent = `Loss after each epoch, ${text} after epoch ${losses.length}: the lower, the better.`;
}

function drawCurve(places) {
  find("#curve").removeAttribute("hidden");
  const drawn = places.map(([x, y]) => `${(300 * x).toFixed(1)},${(79 - 78 * y).toFixed(1)}`);
  find("#curve polyline").setAttribute("points", drawn.join(" "));
}
