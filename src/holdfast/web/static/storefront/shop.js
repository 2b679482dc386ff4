// The project's page and a unit's, live: what is taken elsewhere goes dark here. Filters work at once.
"use strict";

(() => {
  const shop = document.getElementById("shop");
  if (!shop) return;
  document.documentElement.classList.add("js");
  const words = JSON.parse(shop.dataset.words);
  const here = shop.dataset.here;
  const numbers = new Intl.NumberFormat("en");
  const byId = (id) => document.getElementById(id);
  const own = new Set([...document.querySelectorAll("[data-own]")].map((one) => one.dataset.own));
  if (byId("state")?.dataset.look === "mine") own.add(here);

  // Units by code: windows of the picture, cards of the list

  const codeOf = (one) => decodeURIComponent(one.pathname.split("/").at(-1));
  let shown = new Map();
  function look() {
    shown = new Map();
    for (const one of shop.querySelectorAll("a.u")) shown.set(codeOf(one), [one]);
    for (const one of shop.querySelectorAll(".offer")) shown.set(one.dataset.code, [...(shown.get(one.dataset.code) ?? []), one]);
    settle();
  }
  const lookOf = (element) => element.className.match(/is-(\w+)/)[1];
  function change(code, to) {
    for (const one of shown.get(code) ?? []) {
      const from = lookOf(one);
      if (from === to) continue;
      one.classList.replace(`is-${from}`, `is-${to}`);
      if (one.matches(".u")) {
        one.setAttribute("aria-label", `${code}, ${words[to]}`);
        flash(one);
        count(one.closest(".building"));
      } else {
        const badge = one.querySelector(".badge");
        badge.className = `badge is-${to}`;
        badge.textContent = words[to];
      }
    }
  }
  function flash(one) {
    one.classList.add("fresh");
    setTimeout(() => one.classList.remove("fresh"), 1600);
  }
  function count(building) {
    const told = building?.querySelector("[data-free]");
    if (told) told.textContent = numbers.format(building.querySelectorAll(".u.is-available").length);
  }

  // News

  const stale = byId("stale");
  let silence = 0;
  function listen() {
    stale.hidden = true;
    clearTimeout(silence);
    silence = setTimeout(() => { stale.hidden = false; }, 10000);
  }
  function tell({ units, counts }) {
    for (const { code, status } of units) {
      if (status !== "held") own.delete(code);
      change(code, own.has(code) ? "mine" : status);
      if (code === here) showState();
      else if (!shown.has(code) && "whole" in shop.dataset) showAnew();
    }
    if (!counts) return;
    const all = Object.values(counts).reduce((sum, one) => sum + one, 0);
    for (const [name, number] of Object.entries({ ...counts, all })) {
      for (const told of shop.querySelectorAll(`[data-count="${name}"]`)) told.textContent = numbers.format(number);
    }
  }
  const live = new URL(shop.dataset.live, location);
  let stream = null;
  let retry = 0;
  let failures = 0;
  function leave() {
    stream?.close();
    clearTimeout(retry);
    clearTimeout(silence);
  }
  // A browser that is answered by an error gives up: asking again is left to us.
  function lost() {
    stream.close();
    failures += 1;
    retry = setTimeout(watch, Math.min(3e4, 500 * 2 ** failures) * (0.75 + Math.random() / 2));
  }
  function watch() {
    const turn = byId("picture")?.dataset.turn;
    if (turn) live.searchParams.set("turn", turn);
    stream = new EventSource(live);
    stream.addEventListener("heartbeat", (event) => {
      live.searchParams.set("since", event.lastEventId);
      failures = 0;
      listen();
    });
    stream.addEventListener("units", (event) => tell(JSON.parse(event.data)));
    stream.addEventListener("anew", () => (here ? showState() : showAnew()));
    stream.addEventListener("error", lost);
  }
  // A browser keeps few connections to one server: a page that nobody sees gives its own back.
  function attend() {
    leave();
    if (document.hidden) return;
    listen();
    watch();
  }
  document.addEventListener("visibilitychange", attend);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  // Parts of the page, asked for anew

  async function part(address) {
    const answer = await fetch(address, { headers: { "HX-Request": "true" } });
    if (!answer.ok) throw new Error(answer.status);
    const made = document.createElement("template");
    made.innerHTML = await answer.text();
    return made.content;
  }
  const ownAddress = () => location.href.split("#")[0];
  // The same link or field, once what it stood in has been replaced.
  function sameAs(one) {
    const box = one.closest("#picture, #results")?.id;
    const name = one.id ? `#${CSS.escape(one.id)}` : `[href="${CSS.escape(one.getAttribute("href") ?? "")}"]`;
    return () => box && byId(box).querySelector(name)?.focus({ preventScroll: true });
  }
  function showFaults(fresh) {
    for (const fault of fresh.querySelectorAll("[data-wrong]")) {
      const told = byId(fault.id);
      if (told.textContent !== fault.textContent) told.textContent = fault.textContent;
      for (const input of told.closest("fieldset").querySelectorAll("input")) {
        input.toggleAttribute("aria-invalid", false);
        if (fault.dataset.wrong.split(" ").includes(input.name)) input.setAttribute("aria-invalid", "true");
      }
    }
  }
  let asked = 0;
  let isLonger = false;
  async function show(address, isQuiet) {
    const turn = ++asked;
    const results = byId("results");
    if (!isQuiet) results?.setAttribute("aria-busy", "true");
    try {
      const fresh = await part(address);
      if (turn !== asked) return;
      const keepsList = isQuiet && isLonger;
      const focusAgain = sameAs(document.activeElement);
      for (const id of keepsList ? ["picture"] : ["picture", "results"]) byId(id)?.replaceWith(fresh.getElementById(id));
      isLonger = keepsList;
      if (form) showFaults(fresh);
      if (document.activeElement === document.body) focusAgain();
      look();
    } catch {
      if (!isQuiet) location.assign(address);
    }
  }
  // Not all at the same moment, and not more often than somebody can follow.
  let waiting = 0;
  function showAnew() {
    const redraw = () => (byId("results") ? show(ownAddress(), true) : location.reload());
    waiting ||= setTimeout(() => { waiting = 0; redraw(); }, 300 + Math.random() * 1700);
  }
  let due = 0;
  let asking = false;
  let again = false;
  function showState(after = 0, within = 300) {
    if (asking) again = true;
    else due ||= setTimeout(askState, after + Math.random() * within);
  }
  async function askState() {
    due = 0;
    asking = true;
    let failure = null;
    try {
      const fresh = await part(ownAddress());
      const state = fresh.getElementById("state");
      const similar = state.querySelector("#similar-new");
      similar.remove();
      const old = byId("state");
      // What has not changed stays: somebody may be about to press its button.
      state.normalize();
      const csrf = state.querySelector("[name=csrf]");
      csrf?.setAttribute("value", old.querySelector("[name=csrf]")?.value ?? csrf.value);
      if (!old.isEqualNode(state)) {
        const hadFocus = old.contains(document.activeElement);
        old.replaceWith(state);
        if (hadFocus) state.querySelector("a, button")?.focus();
      }
      byId("similar-place").replaceChildren(similar.content);
      look();
      own[state.dataset.look === "mine" ? "add" : "delete"](here);
      change(here, state.dataset.look);
    } catch (error) {
      failure = error.message;
    }
    asking = false;
    if (failure === "404") location.reload();
    else if (failure) showState(2000, 3000);
    else if (again) showState();
    again = false;
  }

  // Filters, buildings, pages

  const form = byId("filters");
  function address(building) {
    const values = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value.trim() && name !== "building") values.append(name, value);
    const chosen = building ?? new URLSearchParams(location.search).get("building");
    if (form.elements.order.selectedIndex === 0) values.delete("order");
    if (chosen) values.set("building", chosen);
    return form.getAttribute("action").split("#")[0] + (values.size ? `?${values}` : "");
  }
  function go(building) {
    const to = address(building);
    history.replaceState(null, "", to);
    show(to);
  }
  let typing = 0;
  form?.addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(go, event.target.inputMode === "decimal" ? 350 : 0);
  });
  form?.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  shop.addEventListener("change", (event) => { if (event.target.id === "building") go(event.target.value); });
  shop.addEventListener("click", async (event) => {
    const link = event.target.closest("[data-clear], [rel=next]");
    if (!link || event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    if (link.matches("[data-clear]")) {
      for (const one of form.elements) {
        if (one.type === "radio") one.checked = !one.value;
        else if (one.type === "checkbox") one.checked = false;
        else if (one.name && one.name !== "order" && one.type !== "hidden") one.value = "";
      }
      go();
      return;
    }
    try {
      const fresh = await part(link.href);
      const [list, more] = [shop.querySelector("#results .offers"), fresh.querySelector("[rel=next]")];
      const first = fresh.querySelector(".offer a");
      list.append(...fresh.querySelectorAll(".offer"));
      if (more) link.replaceWith(more); else link.remove();
      isLonger = true;
      first?.focus({ preventScroll: true });
      look();
    } catch { location.assign(link.href); }
  });

  // What a window is about, and the way from one to the next by arrows: once somebody is at the windows.

  let settle = () => {};
  for (const name of ["pointerover", "focusin"]) {
    shop.addEventListener(name, async function begin(event) {
      if (!event.target.closest("a.u")) return;
      shop.removeEventListener(name, begin);
      settle = (await import(shop.dataset.windows)).begin(shop, words, lookOf, event);
      settle();
    });
  }

  look();
  attend();
})();
