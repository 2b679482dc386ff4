// Commands can be copied by a button. Without this they are there to be selected.
"use strict";

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    const before = button.textContent;
    await navigator.clipboard.writeText(button.dataset.copy);
    button.textContent = button.dataset.done;
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}
