// Lists that follow by themselves: not while nobody looks, and not under somebody's hands.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  const part = event.target;
  if (!part.matches("#rows, #delivery, .result")) return;
  const isBusy = part.contains(document.activeElement) && document.activeElement !== document.body;
  if (document.hidden || part.querySelector(".asks[open]") || (isBusy && part.id === "delivery")) event.preventDefault();
});
