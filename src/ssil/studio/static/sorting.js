"use strict";

/* Sorting photos: one is chosen; keys, and the buttons of the bar below, act on it */

const PAGES = { p: "/", t: "/try", h: "/history", "?": "/help" };
const undo = [];
let chosen = "";

const thumbOf = (digest) => find(`button.thumb[data-digest="${digest}"]`);

function choose(thumb) {
  chosen = thumb.dataset.digest;
  for (const one of findAll("button.thumb")) one.setAttribute("aria-pressed", String(one === thumb));
  showTools(thumb);
}

function showTools(thumb) {
  const bar = find("#tools");
  bar.hidden = !thumb && !undo.length;
  find("#undo").disabled = !undo.length;
  for (const one of findAll("#remove, #move-to, #look-alike")) one.disabled = !thumb;
  find("#chosen").textContent = thumb ? thumb.getAttribute("aria-label") : "No photo is chosen";
  const other = thumb?.dataset.other;
  find("#look-alike").hidden = !other;
  find("#look-alike span").textContent = `Put it into ${other}`;
  if (thumb) offerClasses(thumb.dataset.class);
}

function offerClasses(own) {
  const names = findAll(".balance tbody th a").map((one) => one.textContent);
  const options = names.map((name, at) => {
    const option = new Option(at < 9 ? `${name} (${at + 1})` : name, name);
    option.disabled = name === own;
    return option;
  });
  find("#move-to").replaceChildren(new Option("Put it into ...", ""), ...options);
}

function change(digest, what, fields = {}) {
  return inTurn(() => changeNow(digest, what, fields));
}

async function changeNow(digest, what, fields) {
  const place = findAll("button.thumb").findIndex((one) => one.dataset.digest === digest);
  await htmx.ajax("POST", `/photos/${digest}/${what}`, { target: "#classes", values: fields });
  const left = findAll("button.thumb");
  const next = thumbOf(digest) || left[Math.min(Math.max(place, 0), left.length - 1)];
  if (next) next.focus();
  else showTools(null);
  if (next) choose(next);
}

function remove(thumb) {
  undo.push([thumb.dataset.digest, "restore"]);
  return change(thumb.dataset.digest, "remove");
}

function move(thumb, name) {
  undo.push([thumb.dataset.digest, "move", { class: thumb.dataset.class }]);
  return change(thumb.dataset.digest, "move", { class: name });
}

function takeBack() {
  if (undo.length) change(...undo.pop());
}

/* From photo to photo: left and right in their order, up and down by what is seen */

function step(event, thumb) {
  event.preventDefault();
  const thumbs = findAll("button.thumb");
  const at = thumbs.indexOf(thumb);
  const sideways = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const next = sideways ? thumbs[at + sideways] : rowNeighbour(thumbs, thumb, event.key === "ArrowDown");
  next?.focus();
}

function rowNeighbour(thumbs, thumb, down) {
  const own = thumb.getBoundingClientRect();
  const away = (one) => (one.getBoundingClientRect().top - own.top) * (down ? 1 : -1);
  const beyond = thumbs.filter((one) => away(one) > own.height / 2);
  const nearest = Math.min(...beyond.map(away));
  const row = beyond.filter((one) => away(one) < nearest + 1);
  const sideways = (one) => Math.abs(one.getBoundingClientRect().left - own.left);
  return row.sort((one, other) => sideways(one) - sideways(other))[0];
}

function nextMarked() {
  const marked = findAll("button.thumb").filter((one) => one.querySelector(".mark"));
  const at = marked.findIndex((one) => one.dataset.digest === chosen);
  marked[(at + 1) % marked.length]?.focus();
}

function photoKey(event, thumb) {
  if (event.key.startsWith("Arrow")) return step(event, thumb);
  if (event.key === "Delete" || event.key === "Backspace") return remove(thumb);
  if (event.key.toLowerCase() === "m" && thumb.dataset.other) return move(thumb, thumb.dataset.other);
  const row = findAll(".balance tbody th a")[Number(event.key) - 1];
  if (/^[1-9]$/.test(event.key) && row) return move(thumb, row.textContent);
  return undefined;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, textarea, select")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (PAGES[key]) location.href = PAGES[key];
  else if (key === "l") find("#learn:not(:disabled)")?.click();
  else if (key === "n") nextMarked();
  else if (key === "z") takeBack();
  else if (event.target.matches("button.thumb")) photoKey(event, event.target);
});

function prepareSorting() {
  const classes = find("#classes");
  classes.addEventListener("focusin", (event) => { if (event.target.matches("button.thumb")) choose(event.target); });
  classes.addEventListener("click", (event) => { event.target.closest("button.thumb")?.focus(); });  // Safari does not
  find("#remove").addEventListener("click", () => remove(thumbOf(chosen)));
  find("#undo").addEventListener("click", takeBack);
  find("#next-marked").addEventListener("click", nextMarked);
  find("#look-alike").addEventListener("click", () => move(thumbOf(chosen), thumbOf(chosen).dataset.other));
  find("#move-to").addEventListener("change", (event) => { if (event.target.value) move(thumbOf(chosen), event.target.value); });
}

if (find("#drop")) { preparePhotos(); prepareSorting(); }
if (find("#progress")) followProgress(find("#progress"));
if (find("#try")) prepareTrying();
