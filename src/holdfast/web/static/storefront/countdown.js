// Counts down what has an end: [data-ends] in milliseconds, by the server's clock ([data-now] when the page was made).
// The element says `over` once, when the time has come. A progress bar beside it shows what is left.
"use strict";

(() => {
  const arrived = performance.now();
  const left = (clock) => Number(clock.dataset.ends) - Number(clock.dataset.now) - (performance.now() - arrived - Number(clock.dataset.from ?? 0));
  const two = (number) => String(number).padStart(2, "0");
  function shown(milliseconds) {
    const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
    const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600), Math.floor(seconds / 60)];
    if (days) return `${days}:${two(hours % 24)}:${two(minutes % 60)}:${two(seconds % 60)}`;
    return hours ? `${hours}:${two(minutes % 60)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
  }
  function tick(clock) {
    const rest = left(clock);
    const text = shown(rest);
    if (clock.textContent !== text) clock.textContent = text;
    const box = clock.closest(".countdown");
    box?.classList.toggle("soon", rest < 60000);
    const bar = box?.querySelector("progress");
    if (bar) bar.value = Math.max(0, rest / 1000);
    if (rest > 0 || clock.dataset.over) return;
    clock.dataset.over = "yes";
    clock.dispatchEvent(new Event("over", { bubbles: true }));
  }
  const all = () => { for (const clock of document.querySelectorAll("[data-ends]")) tick(clock); };
  all();
  setInterval(all, 250);
})();
