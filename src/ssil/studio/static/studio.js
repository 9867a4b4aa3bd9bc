"use strict";

const find = (selector) => document.querySelector(selector);

/* Adding photos */

const BATCH = 16;            // photos of one request
const BATCH_BYTES = 16e6;    // bytes of one request, unless a single photo has more
const PAUSES = [500, 1000, 2000, 4000, 8000, 15000];  // milliseconds before a request that failed is sent again

const uploads = { left: [], total: 0, done: 0, refused: [], busy: false };
let loose = [];              // photos without a folder, while their class has no name

function classOf(path) {
  const parts = path.split("/").filter(Boolean);
  return parts.length > 1 ? parts[parts.length - 2] : "";
}

function addFiles(found) {
  const typed = find("#class-name").value.trim();
  const named = found.map(({ file, path }) => ({ file, name: classOf(path) || typed }));
  loose = named.filter((one) => !one.name).map((one) => one.file);
  enqueue(named.filter((one) => one.name));
  if (loose.length) {
    say(`What is on ${loose.length === 1 ? "this photo" : `these ${loose.length} photos`}? Type the class, then press Enter.`);
    find("#class-name").focus();
  }
}

function enqueue(items) {
  if (!items.length) return;
  uploads.left.push(...items);
  uploads.total += items.length;
  showUploads();
  if (!uploads.busy) send();
}

function nextBatch() {
  const name = uploads.left[0].name;
  const batch = [];
  let bytes = 0;
  while (uploads.left.length && uploads.left[0].name === name && batch.length < BATCH) {
    bytes += uploads.left[0].file.size;
    if (batch.length && bytes > BATCH_BYTES) break;
    batch.push(uploads.left.shift().file);
  }
  return { name, batch };
}

async function send() {
  uploads.busy = true;
  while (uploads.left.length) {
    const { name, batch } = nextBatch();
    const answer = await sendBatch(name, batch);
    uploads.done += batch.length;
    uploads.refused.push(...answer.refused);
    showUploads();
  }
  uploads.busy = false;
  say(`${uploads.done - uploads.refused.length} of ${uploads.total} photos added.`);
  find("#upload-bar").hidden = true;
  Object.assign(uploads, { total: 0, done: 0, refused: [] });
  refreshClasses();
}

async function sendBatch(name, batch) {
  for (let attempt = 0; ; attempt++) {
    try {
      const form = new FormData();
      for (const file of batch) form.append("images", file, file.name);
      const answer = await fetch(`/photos?class=${encodeURIComponent(name)}`, { method: "POST", body: form });
      if (answer.ok) return await answer.json();
      if (answer.status < 500) return refuseAll(batch, (await answer.json()).detail);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;  // not the network
    }
    say("The connection was lost. The upload goes on as soon as it is back.");
    await new Promise((resolve) => setTimeout(resolve, PAUSES[Math.min(attempt, PAUSES.length - 1)]));
  }
}

function refuseAll(batch, reason) {
  return { added: 0, refused: batch.map((file) => ({ name: file.name, reason: String(reason) })) };
}

function say(text) {
  find("#upload-status").textContent = text;
}

function showUploads() {
  const bar = find("#upload-bar");
  bar.hidden = false;
  bar.max = uploads.total;
  bar.value = uploads.done;
  say(`${uploads.done} of ${uploads.total} photos sent`);
  if (uploads.refused.length) showRefused();
}

function showRefused() {
  const box = find("#refused");
  box.hidden = false;
  box.open = true;
  const count = uploads.refused.length;
  box.querySelector("summary").textContent = `${count} ${count === 1 ? "file was" : "files were"} not added`;
  box.querySelector("ul").replaceChildren(...uploads.refused.map((one) => {
    const item = document.createElement("li");
    item.textContent = `${one.name}: ${one.reason}`;
    return item;
  }));
}

function refreshClasses() {
  return htmx.ajax("GET", "/photos", { target: "#classes" });
}

async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files].map((file) => ({ file, path: file.name }));
  return (await Promise.all(entries.map(filesBelow))).flat();
}

async function filesBelow(entry) {
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    return file.name.startsWith(".") ? [] : [{ file, path: entry.fullPath }];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) {  // a folder is read in parts
    const part = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!part.length) break;
    found.push(...part);
  }
  return (await Promise.all(found.map(filesBelow))).flat();
}

function acceptDrops(zone, use) {
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => { event.preventDefault(); zone.classList.add("over"); });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    use(await droppedFiles(event.dataTransfer));
  });
}

function preparePhotos() {
  acceptDrops(find("#drop"), addFiles);
  prepareBurst();
  for (const input of [find("#files"), find("#folder"), find("#phone")]) {
    input.addEventListener("change", () => {
      addFiles([...input.files].map((file) => ({ file, path: file.webkitRelativePath || file.name })));
      input.value = "";
    });
  }
  find("#class-name").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.value.trim()) return;
    const name = event.target.value.trim();
    enqueue(loose.map((file) => ({ file, name })));
    loose = [];
  });
  window.addEventListener("beforeunload", (event) => { if (uploads.busy) event.preventDefault(); });
}

/* The progress of an update */

const STAGES = { starting: "Starting: the network is loaded.", reading: "Looking at the photos.", learning: "Learning." };

function followProgress(box) {
  const source = new EventSource(box.dataset.events);
  const points = [];
  let stage = "";
  source.addEventListener("progress", (event) => {
    const facts = JSON.parse(event.data);
    if (facts.stage !== stage) {
      stage = facts.stage;
      points.length = 0;
      find("#stage").textContent = STAGES[stage] || stage;
    }
    points.push(facts);
    if (stage !== "starting") find("#bar").value = facts.done;
    find("#left").textContent = timeLeft(points);
    drawCurve(points);
  });
  source.addEventListener("end", () => { source.close(); location.reload(); });
}

function timeLeft(points) {
  const last = points.at(-1);
  const passed = last.time - points[0].time;
  const part = last.done - points[0].done;
  if (passed < 1 || part <= 0) return "";
  const seconds = Math.ceil(passed * (1 - last.done) / part);
  return seconds < 90 ? `about ${seconds} seconds left` : `about ${Math.round(seconds / 60)} minutes left`;
}

function drawCurve(points) {
  if (points.length > 2) find("#curve").removeAttribute("hidden");
  const first = points[0].time;
  const span = Math.max(points.at(-1).time - first, 1);
  const places = points.map((one) => `${(300 * (one.time - first) / span).toFixed(1)},${(79 - 78 * one.done).toFixed(1)}`);
  find("#curve polyline").setAttribute("points", places.join(" "));
}

/* Trying the model */

async function tryPhoto(file) {
  const given = new DataTransfer();
  given.items.add(file);
  find("#tried").files = given.files;
  preview(file);
  find("#try").requestSubmit();
}

async function preview(file) {
  const canvas = find("#preview");
  try {
    const image = await createImageBitmap(file);
    const scale = Math.min(1, 320 / Math.max(image.width, image.height));
    canvas.width = image.width * scale;
    canvas.height = image.height * scale;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.hidden = false;
  } catch {
    canvas.hidden = true;  // not an image: the server says why
  }
}

function prepareTrying() {
  acceptDrops(find("#try"), (found) => { if (found.length) tryPhoto(found[0].file); });
  find("#tried").addEventListener("change", (event) => {
    if (event.target.files.length) tryPhoto(event.target.files[0]);
  });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files][0];
    if (file) tryPhoto(file);
  });
  prepareCamera();
  find("#shoot").addEventListener("click", async () => tryPhoto(await shot()));
}

/* The camera */

const BURST = 300;           // milliseconds between two photos while the button is held

function prepareCamera() {
  find("#camera-button").addEventListener("click", cameraOn);
  find("#camera-off").addEventListener("click", cameraOff);
}

function prepareBurst() {
  prepareCamera();
  let holding = 0;
  const hold = (event) => {
    event.preventDefault();
    if (holding || find("#camera").hidden) return;
    if (!find("#class-name").value.trim()) {
      find("#camera-status").textContent = "Type the class first.";
      find("#class-name").focus();
      return;
    }
    takePhoto();
    holding = setInterval(takePhoto, BURST);
  };
  const release = () => { clearInterval(holding); holding = 0; };
  find("#shoot").addEventListener("pointerdown", hold);
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && !find("#camera").hidden && !event.target.matches("input")) hold(event);
  });
  for (const kind of ["pointerup", "pointercancel", "keyup", "blur"]) window.addEventListener(kind, release);
}

async function takePhoto() {
  const name = find("#class-name").value.trim();
  enqueue([{ file: await shot(), name }]);
}

async function cameraOn() {
  const video = find("#video");
  try {
    video.srcObject = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
    await video.play();
    find("#camera").hidden = false;
    find("#camera-status").textContent = "The camera is on.";
  } catch (error) {
    find("#camera-status").textContent = `The camera can't be used (${error.message || error.name}).`;
  }
}

function cameraOff() {
  const video = find("#video");
  for (const track of video.srcObject?.getTracks() || []) track.stop();
  video.srcObject = null;
  find("#camera").hidden = true;
  find("#camera-status").textContent = "The camera is off.";
}

async function shot() {
  const video = find("#video");
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  const data = await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.92));
  return new File([data], "camera.jpg", { type: "image/jpeg" });
}

/* Keys */

const PAGES = { p: "/", t: "/try", h: "/history", "?": "/help" };
const undo = [];

async function change(digest, what, fields = {}) {
  const thumbs = [...document.querySelectorAll("button.thumb")];
  const place = thumbs.findIndex((one) => one.dataset.digest === digest);
  await htmx.ajax("POST", `/photos/${digest}/${what}`, { target: "#classes", values: fields });
  const left = [...document.querySelectorAll("button.thumb")];
  (left.find((one) => one.dataset.digest === digest) || left[Math.min(place, left.length - 1)])?.focus();
}

function step(event, thumb) {
  const thumbs = [...document.querySelectorAll("button.thumb")];
  const moves = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 };
  event.preventDefault();
  thumbs[Math.max(0, Math.min(thumbs.length - 1, thumbs.indexOf(thumb) + moves[event.key]))].focus();
}

function photoKey(event, thumb) {
  const { digest } = thumb.dataset;
  if (event.key.startsWith("Arrow")) return step(event, thumb);
  if (event.key === "Delete" || event.key === "Backspace") {
    undo.push([digest, "restore"]);
    return change(digest, "remove");
  }
  if (event.key === "m" && thumb.dataset.other) {
    undo.push([digest, "move", { class: thumb.dataset.class }]);
    return change(digest, "move", { class: thumb.dataset.other });
  }
  const row = document.querySelectorAll(".balance tbody th a")[Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && row) {
    undo.push([digest, "move", { class: thumb.dataset.class }]);
    return change(digest, "move", { class: row.textContent });
  }
  return undefined;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (PAGES[key]) location.href = PAGES[key];
  else if (key === "l") find("#learn:not(:disabled)")?.click();
  else if (key === "z" && undo.length) change(...undo.pop());
  else if (event.target.matches("button.thumb")) photoKey(event, event.target);
});

/* What the server refuses is told, and changes nothing on the page */

document.addEventListener("htmx:response:error", (event) => {
  let reason = "It did not work. Reload the page, and try again.";
  try { reason = JSON.parse(event.detail.ctx.text).detail; } catch { /* no JSON */ }
  (find("#upload-status") || find("#camera-status") || find("[role=status]")).textContent = String(reason);
});

/* Buttons of slow requests say that they were heard */

document.addEventListener("submit", (event) => {
  if (!event.target.matches(".slow, .learn form")) return;
  const button = event.target.querySelector("button");
  setTimeout(() => { button.disabled = true; button.textContent = "One moment ..."; });
});

if (find("#drop")) preparePhotos();
if (find("#progress")) followProgress(find("#progress"));
if (find("#try")) prepareTrying();
