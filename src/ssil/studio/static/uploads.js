"use strict";

/* Adding photos */

const BATCH = 16;            // photos of one request
const BATCH_BYTES = 16e6;    // bytes of one request, unless a single photo has more
const PAUSES = [500, 1000, 2000, 4000, 8000, 15000];  // milliseconds before a request that failed is sent again
const NO_ROOM = 507;         // the disk is full: nothing to be gained by trying again
const LOST = "The connection was lost. The upload goes on as soon as it is back.";

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
  await refreshClasses();
  checkPhotos();
}

async function sendBatch(name, batch) {
  for (let attempt = 0; ; attempt++) {
    try {
      const form = new FormData();
      for (const file of batch) form.append("images", file, file.name);
      const answer = await fetch(`/photos?class=${encodeURIComponent(name)}`, { method: "POST", body: form });
      if (answer.ok) return await answer.json();
      const again = answer.status === 401 || (answer.status >= 500 && answer.status !== NO_ROOM);
      if (!again) return refuseAll(batch, (await answer.json()).detail);
      say(answer.status === 401 ? LOCKED : LOST);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;  // not the network
      say(LOST);
    }
    await pause(PAUSES[Math.min(attempt, PAUSES.length - 1)]);
  }
}

function refuseAll(batch, reason) {
  return { added: 0, refused: batch.map((file) => ({ name: file.name, reason: String(reason) })) };
}

function say(text) {
  (find("#upload-status") || find("#corrected")).textContent = text;
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

/* One change of the list after the other, so that no older answer replaces a newer one */

let lastChange = Promise.resolve();

function inTurn(change) {
  lastChange = lastChange.then(change, change);
  return lastChange;
}

function refreshClasses() {
  return inTurn(async () => {
    const answer = await fetch("/photos");
    if (!answer.ok) return;
    const text = await answer.text();
    const { digest } = document.activeElement.dataset;
    find("#classes").innerHTML = text;
    if (digest) find(`button.thumb[data-digest="${digest}"]`)?.focus();
  });
}

/* Photos are looked at before they are learnt */

let checking = false;

async function checkPhotos() {
  if (checking) return;
  checking = true;
  try {
    let state = await checkState("POST");
    if (state.running) find("#check-status").textContent = "Looking for odd photos. You need not wait for it.";
    const looked = state.running;
    while (state.running) {
      find("#check-bar").hidden = false;
      find("#check-bar").value = state.done;
      await pause(700);
      state = await checkState("GET");
    }
    if (looked) await refreshClasses();
    tellMarked(looked);
  } catch { /* the connection is lost, which is told where it matters */ }
  find("#check-bar").hidden = true;
  checking = false;
}

async function checkState(method) {
  const answer = await fetch("/photos/check", { method });
  if (!answer.ok) throw new TypeError("no answer");
  return answer.json();
}

function tellMarked(looked) {
  const count = findAll("button.thumb .mark").length;
  const text = `${count} ${count === 1 ? "photo is" : "photos are"} marked: look at ${count === 1 ? "it" : "them"} before you learn.`;
  find("#check-status").textContent = count ? text : looked ? "No odd photo was found." : "";
  find("#next-marked").hidden = !count;
}

/* Files that are dropped */

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
  if (find("button.thumb")) checkPhotos();
  window.addEventListener("beforeunload", (event) => { if (uploads.busy) event.preventDefault(); });
}
