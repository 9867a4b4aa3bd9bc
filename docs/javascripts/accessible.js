// What the theme leaves out for readers with a screen reader or a keyboard alone: names, and tables that can be scrolled.
function complete() {
  document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
  document.querySelectorAll(".md-code__nav").forEach((bar, place) => bar.setAttribute("aria-label", `Code ${place + 1}`));
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((part) => part.setAttribute("tabindex", "0"));
}

complete();
new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
