// The windows of a building: what a window is about is told beside it, and arrows go from one to the next.

let begun = null;

export function begin(shop, words, lookOf, event) {
  begun ??= windows(shop, words, lookOf);
  begun.met(event);
  return begun.settle;
}

function windows(shop, words, lookOf) {
  const types = JSON.parse(shop.dataset.types ?? "[]");
  const numbers = new Intl.NumberFormat("en");

  // One window of each building is a tab stop, the arrows lead to the others of the building.
  function settle() {
    for (const tower of shop.querySelectorAll(".tower")) {
      const all = [...tower.querySelectorAll("a.u")];
      const stop = all.find((one) => one === document.activeElement)
        ?? all.find((one) => one.matches("[tabindex='0']")) ?? all.find((one) => one.matches("[aria-current]")) ?? all[0];
      if (stop) makeStop(tower, stop);
    }
  }
  function makeStop(tower, stop) {
    for (const one of tower.querySelectorAll("a.u")) one.tabIndex = one === stop ? 0 : -1;
  }
  const of = (floor) => [...floor.querySelectorAll("a.u")];
  function beside(one, step) {
    const all = of(one.closest(".floor"));
    return all[all.indexOf(one) + step];
  }
  function across(one, step) {
    const floors = [...one.closest(".tower").querySelectorAll(".floor")];
    const floor = floors[floors.indexOf(one.closest(".floor")) + step];
    const far = (other) => Math.abs(other.offsetLeft - one.offsetLeft);
    return floor && of(floor).reduce((best, other) => (!best || far(other) < far(best) ? other : best), null);
  }
  shop.addEventListener("keydown", (event) => {
    const one = event.target.closest("a.u");
    if (!one || event.altKey || event.ctrlKey || event.metaKey) return;
    const steps = {
      ArrowRight: () => beside(one, 1), ArrowLeft: () => beside(one, -1),
      ArrowUp: () => across(one, -1), ArrowDown: () => across(one, 1),
    };
    const next = steps[event.key]?.();
    if (!next) return;
    event.preventDefault();
    makeStop(one.closest(".tower"), next);
    next.focus();
  });

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  function line(text, element = "span") {
    return Object.assign(document.createElement(element), { textContent: text, dir: "auto" });
  }
  function show(one) {
    const [type, area, price] = one.dataset.d.split("|");
    const told = [
      types[type],
      shop.dataset.area.replace("{area}", numbers.format(area)),
      shop.dataset.currency.replace("{amount}", numbers.format(price)),
      words[lookOf(one)],
    ];
    const code = decodeURIComponent(one.pathname.split("/").at(-1));
    tip.replaceChildren(line(code, "strong"), ...told.filter(Boolean).map((text) => line(text)));
    tip.hidden = false;
    const box = one.getBoundingClientRect();
    const isAbove = box.top > tip.offsetHeight + 8;
    const middle = box.left + box.width / 2 - tip.offsetWidth / 2;
    tip.style.top = `${isAbove ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
    tip.style.left = `${Math.max(8, Math.min(middle, innerWidth - tip.offsetWidth - 8))}px`;
  }
  function met(event) {
    const one = event.target.closest?.("a.u[data-d]");
    const isMeant = event.type === "pointerover" ? event.pointerType !== "touch" : one?.matches(":focus-visible");
    if (one && isMeant) show(one); else tip.hidden = true;
  }
  document.addEventListener("pointerover", met);
  document.addEventListener("focusin", met);
  document.addEventListener("scroll", () => { tip.hidden = true; }, true);
  return { met, settle };
}
