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

  // One of them is in the order of tabs, the arrows lead to the others.
  let focused = null;
  function settle() {
    const all = [...shop.querySelectorAll("a.u")];
    for (const one of all) one.tabIndex = -1;
    focused = all.find((one) => one === focused) ?? all.find((one) => one.matches("[aria-current]")) ?? all[0];
    if (focused) focused.tabIndex = 0;
  }
  function moveTo(one) {
    focused.tabIndex = -1;
    focused = one;
    one.tabIndex = 0;
    one.focus();
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
    moveTo(next);
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
