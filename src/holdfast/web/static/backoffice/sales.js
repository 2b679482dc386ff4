// A question that somebody is answering is not taken away: until it is closed, the panel stays as it is. Whoever
// acts on a unit that has changed meanwhile is told so, and keeps what was typed.
"use strict";

document.addEventListener("htmx:beforeRequest", (event) => {
  const panel = event.target;
  if (panel.id === "unit-panel" && panel.querySelector("details[open]")) event.preventDefault();
});
