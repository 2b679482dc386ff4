"use strict";

// A file is dropped onto the field as onto the button; a form that takes a while says so; a choice of sheet
// is looked at when it is made.

document.addEventListener("submit", (event) => {
  const button = event.target.querySelector("button[data-busy]");
  if (button && !event.defaultPrevented) {
    button.querySelector("span").textContent = button.dataset.busy;
    // Not at once: a button that is switched off is not sent along.
    setTimeout(() => { button.disabled = true; }, 0);
  }
});

document.addEventListener("change", (event) => {
  if (event.target.matches("select[data-sends]")) event.target.form.requestSubmit();
});

// Whoever comes back to the page finds its button as it was.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});

for (const field of document.querySelectorAll(".drop")) {
  const input = field.querySelector("input[type=file]");
  for (const name of ["dragenter", "dragover"]) {
    field.addEventListener(name, (event) => {
      event.preventDefault();
      field.classList.add("over");
    });
  }
  field.addEventListener("dragleave", () => field.classList.remove("over"));
  field.addEventListener("drop", (event) => {
    event.preventDefault();
    field.classList.remove("over");
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
}
