// What every page of the back office can do with a script: copy, close, count down. Nothing needs it.
"use strict";

document.documentElement.classList.add("js");

document.addEventListener("click", async (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) {
    await navigator.clipboard.writeText(copy.dataset.copy);
    const word = copy.querySelector("span");
    const before = word.textContent;
    word.textContent = copy.dataset.done;
    setTimeout(() => { word.textContent = before; }, 1500);
  }
  if (event.target.closest("[data-close]")) closeDetails(event.target.closest("details"));
});

function closeDetails(details) {
  details.open = false;
  details.querySelector("summary").focus();
}

// A second click does not send a form again: what was created by the first would be shown to nobody.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.matches("[method=get]")) return;
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// The current tab is seen, also on a phone that has no room for all of them.
const tab = document.querySelector(".tabs [aria-current]");
if (tab) {
  const [row, box] = [tab.parentElement.getBoundingClientRect(), tab.getBoundingClientRect()];
  tab.parentElement.scrollLeft += box.left + box.width / 2 - row.left - row.width / 2;
}

// One question at a time; Escape and a click elsewhere take it back.
document.addEventListener("toggle", (event) => {
  const asked = event.target;
  if (!(asked instanceof HTMLDetailsElement) || !asked.open || !asked.matches(".asks")) return;
  for (const other of document.querySelectorAll(".asks[open]")) if (other !== asked) other.open = false;
  asked.querySelector(".question").scrollIntoView({ block: "nearest" });
}, true);
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  const open = document.querySelector(".asks[open], .menu[open]");
  if (!open) return;
  closeDetails(open);
});
document.addEventListener("click", (event) => {
  for (const asked of document.querySelectorAll(".asks[open]")) if (!asked.contains(event.target)) asked.open = false;
});

// Countdowns go by the server's clock: how far ours is off follows from the time at which the page was made.
const holdfast = window.holdfast = {
  skewMs: 0,
  setServerTime(ms) { this.skewMs = ms - Date.now(); },
  now() { return Date.now() + this.skewMs; },
};
const digits = document.documentElement.dataset.digits === "arab" ? "٠١٢٣٤٥٦٧٨٩" : "0123456789";
const inDigits = (text) => text.replace(/\d/g, (digit) => digits[digit]);
function left(seconds) {
  if (seconds <= 0) return inDigits("0:00");
  const [days, hours, minutes] = [86400, 3600, 60].map((unit) => Math.floor(seconds / unit));
  const two = (number) => String(number).padStart(2, "0");
  if (days >= 2) return null;
  const text = hours ? `${hours}:${two(minutes % 60)}:${two(Math.floor(seconds) % 60)}` : `${minutes}:${two(Math.floor(seconds) % 60)}`;
  return inDigits(text);
}
function tick() {
  const now = holdfast.now() / 1000;
  for (const shown of document.querySelectorAll("[data-ends]")) {
    const text = left(Number(shown.dataset.ends) - now);
    if (text === null || shown.textContent === text) continue;
    shown.textContent = text;
    shown.classList.toggle("over", Number(shown.dataset.ends) <= now);
  }
}
const made = document.documentElement.dataset.now;
if (made) holdfast.setServerTime(Number(made));
tick();
setInterval(tick, 1000);
