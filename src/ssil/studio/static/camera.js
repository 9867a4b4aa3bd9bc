"use strict";

/* Trying the model */

async function tryPhoto(file) {
  const given = new DataTransfer();
  given.items.add(file);
  find("#tried").files = given.files;
  find("#correct").hidden = false;
  find("#corrected").textContent = "";
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
  find("#correct").addEventListener("submit", correct);
  find("#shoot").addEventListener("click", async () => tryPhoto(await shot()));
}

/* A photo that was not recognised waits to be learnt in the right class */

async function correct(event) {
  event.preventDefault();
  const name = find("#right-class").value.trim();
  const [file] = find("#tried").files;
  if (!name || !file) return;
  const answer = await sendBatch(name, [file]);
  say(answer.added ? `It waits in ${name} on the page Photos, until you learn again.` : answer.refused[0].reason);
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
  let taken = 0;
  const hold = (event) => {
    event.preventDefault();
    if (holding || find("#camera").hidden) return;
    if (!find("#class-name").value.trim()) {
      find("#camera-status").textContent = "Type the class first.";
      find("#class-name").focus();
      return;
    }
    taken = 0;
    const next = () => { takePhoto(); find("#camera-status").textContent = takenText(++taken); };
    next();
    holding = setInterval(next, BURST);
  };
  const release = () => { clearInterval(holding); holding = 0; };
  find("#shoot").addEventListener("pointerdown", hold);
  find("#shoot").addEventListener("contextmenu", (event) => event.preventDefault());  // which a long touch asks for
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && !find("#camera").hidden && !event.target.matches("input")) hold(event);
  });
  for (const kind of ["pointerup", "pointercancel", "keyup", "blur"]) window.addEventListener(kind, release);
}

function takenText(count) {
  return `${count} ${count === 1 ? "photo" : "photos"} taken.`;
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
