"use strict";

const find = (selector) => document.querySelector(selector);
const findAll = (selector) => [...document.querySelectorAll(selector)];

/* A studio that was started anew has a new key, and this page the old one */

const LOCKED = "The studio was started anew. Open the address that it has printed in the terminal; this page then goes on.";

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function untilBack() {
  for (;;) {
    await pause(2000);
    try {
      if ((await fetch(location.href)).ok) return;
    } catch { /* not yet */ }
  }
}

/* What the server refuses is told, and changes nothing on the page */

document.addEventListener("htmx:response:error", (event) => {
  let reason = "It did not work. Reload the page, and try again.";
  try { reason = JSON.parse(event.detail.ctx.text).detail; } catch { /* no JSON */ }
  if (event.detail.ctx.response?.status === 401) reason = LOCKED;
  (find("#upload-status") || find("#camera-status") || find("[role=status]")).textContent = String(reason);
});

/* What takes long is announced where its answer will be */

document.addEventListener("click", (event) => {
  const { wait } = event.target.dataset;
  if (wait) find(event.target.getAttribute("hx-target")).textContent = wait;
});

/* Buttons of slow requests say that they were heard */

document.addEventListener("submit", (event) => {
  if (!event.target.matches(".slow, .learn form")) return;
  const button = event.target.querySelector("button");
  setTimeout(() => { button.disabled = true; button.textContent = "One moment ..."; });
});
