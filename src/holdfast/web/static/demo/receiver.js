// Webhooks are put on top of the list as they land. Without this the page shows them when it is loaded.
"use strict";

const list = document.querySelector("[data-live]");
const state = document.querySelector("[data-live-state]");
const count = document.querySelector("[data-count]");
const stream = new EventSource(list.dataset.live);

stream.onopen = () => { state.hidden = false; };
stream.onerror = () => { state.hidden = true; };
stream.onmessage = (event) => {
  document.querySelector("[data-empty]").hidden = true;
  list.insertAdjacentHTML("afterbegin", JSON.parse(event.data));
  list.firstElementChild.classList.add("new");
  while (list.children.length > Number(list.dataset.most)) list.lastElementChild.remove();
  count.textContent = list.children.length;
};
