// The page of a booking: keeps to the server's clock, warns before the end, and shows anew what has changed.
// Nothing here decides anything: without it the same forms and links do the same.
"use strict";

(() => {
  const loaded = performance.now();
  const page = document.querySelector("[data-booking]");

  // Clocks are set by what the server says: that of a device may be wrong, and stands still while it sleeps.
  function setClocks(now, endsAt) {
    for (const clock of document.querySelectorAll(".countdown [data-ends]")) {
      clock.dataset.now = now;
      clock.dataset.from = performance.now() - loaded;
      // One that ran ahead comes to its end once more.
      delete clock.dataset.over;
      if (endsAt !== null) clock.dataset.ends = endsAt;
    }
  }

  function isTouched() {
    const typed = [...document.querySelectorAll("form[novalidate] input")];
    return typed.some((input) => (input.type === "checkbox" ? input.checked : input.type !== "hidden" && input.value));
  }

  // Never a reload: of the answer to a form that would send the form again.
  // Who has paid waits on, while the booking waits for the deposit.
  function lookAgain(status) {
    const isWaiting = status === "signed" && new URLSearchParams(location.search).has("paid");
    location.replace(page.dataset.booking + (isWaiting ? "?paid=1" : ""));
  }

  let asking = false;
  let wait = 0;

  async function ask() {
    if (asking) return;
    asking = true;
    clearTimeout(wait);
    const asked = performance.now();
    try {
      const answer = await fetch(`${page.dataset.booking}/state`, { cache: "no-store" });
      if (answer.status === 404) return lookAgain();
      if (answer.ok) follow(await answer.json(), (performance.now() - asked) / 2);
    } catch {
      // Away for a moment; the next time will tell.
    } finally {
      asking = false;
      plan();
    }
  }

  function follow(state, travelled) {
    if (state.status !== page.dataset.status) return lookAgain(state.status);
    const clock = document.querySelector(".countdown [data-ends]");
    const moved = clock && Math.abs(Number(clock.dataset.ends) - state.endsAt) > 999;
    if (moved && !isTouched()) return lookAgain(state.status);
    setClocks(state.now + travelled, state.endsAt);
  }

  function plan() {
    clearTimeout(wait);
    if (!document.hidden) wait = setTimeout(ask, Number(page.dataset.poll) * 1000);
  }

  function warn() {
    const box = document.querySelector(".countdown.held");
    const told = box?.querySelector("[data-warning]");
    const text = box?.classList.contains("soon") ? told.dataset.warning : "";
    // It is read out whenever it changes.
    if (told && told.textContent !== text) told.textContent = text;
  }

  function watch() {
    document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(wait) : ask()));
    addEventListener("pageshow", (event) => event.persisted && ask());
    addEventListener("online", ask);
    document.addEventListener("over", ask);
    setInterval(warn, 500);
    ask();
  }

  // What was typed stays in this tab until it is signed or the booking cancelled: if the hold runs out
  // meanwhile, the form of the next one has it.
  const KEPT = "holdfast-buyer";
  const typedFields = () => [...document.querySelectorAll("form[novalidate] input[autocomplete]")];
  function keepTyped() {
    sessionStorage.setItem(KEPT, JSON.stringify(typedFields().map((input) => [input.name, input.value])));
  }
  function restoreTyped() {
    const kept = new Map(JSON.parse(sessionStorage.getItem(KEPT) ?? "[]"));
    for (const input of typedFields()) input.value ||= kept.get(input.name) ?? "";
  }
  if (page?.dataset.status === "open") {
    restoreTyped();
    document.querySelector("form[novalidate]").addEventListener("input", keepTyped);
  } else if (page && page.dataset.status !== "lapsed") sessionStorage.removeItem(KEPT);
  // These carry it without a script.
  for (const field of document.querySelectorAll("[data-typed]")) field.remove();

  if (page && Number(page.dataset.poll)) watch();

  // A button that has to wait opens by itself; the server would say no until then.
  for (const form of document.querySelectorAll("form[data-waits]")) {
    const button = form.querySelector("button");
    const told = form.querySelector("[data-wait-told]");
    button.disabled = true;
    told.hidden = false;
    form.addEventListener("over", () => {
      button.disabled = false;
      told.hidden = true;
    });
  }

  // Escape and Cancel close a question again.
  function close(asked) {
    asked.open = false;
    asked.querySelector("summary").focus();
  }
  for (const button of document.querySelectorAll("[data-close]")) {
    button.hidden = false;
    button.addEventListener("click", () => close(button.closest("details")));
  }
  document.addEventListener("keydown", (event) => {
    const asked = event.key === "Escape" && event.target.closest("details[open]");
    if (asked && asked.querySelector("[data-close]")) close(asked);
  });

  // One click is one click.
  for (const form of document.querySelectorAll("form[method=post]")) {
    form.addEventListener("submit", (event) => {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
      form.querySelector("button")?.setAttribute("aria-disabled", "true");
    });
  }
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) {
      delete form.dataset.sent;
      form.querySelector("button")?.removeAttribute("aria-disabled");
    }
  });

  for (const button of document.querySelectorAll("[data-copy]")) {
    const field = document.getElementById(button.dataset.copy);
    const told = button.parentElement.querySelector("[role=status]");
    button.hidden = !navigator.clipboard;
    field.addEventListener("focus", () => field.select());
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(field.value);
      told.textContent = button.dataset.done;
    });
  }
})();
