// The board and its table, live: what changes elsewhere appears here. Filters work at once; arrows go from cell to cell.
"use strict";

(() => {
  const live = document.querySelector("[data-live]");
  const form = document.querySelector(".board-filters");
  if (!live || !form) return;
  const isTable = live.dataset.view === "table";
  const stale = live.querySelector("[data-stale]");
  const ended = live.querySelector("[data-ended]");
  const numbers = new Intl.NumberFormat(document.documentElement.dataset.digits === "arab" ? "ar-EG" : "en");
  const said = (text, number, all) => text.replace("{n}", numbers.format(number)).replace("{all}", numbers.format(all));
  const part = () => document.getElementById("board-part");
  const inLatin = (text) => text.replace(/[٠-٩]/g, (digit) => "٠١٢٣٤٥٦٧٨٩".indexOf(digit));
  let units = new Map();

  function look() {
    units = new Map();
    if (isTable) for (const row of part().querySelectorAll("tr[data-code]")) units.set(row.dataset.code, row);
    else for (const cell of part().querySelectorAll("a.u")) units.set(cell.firstChild.textContent, cell);
    if (!isTable) settleFocus();
  }

  // Filters of the board

  const amount = (name) => {
    const text = inLatin(form.elements[name].value).replace(/[,٬\s]/g, "").replace("٫", ".");
    return /^\d+(\.\d+)?$/.test(text) ? Number(text) : null;
  };
  function asked() {
    const statuses = [...form.querySelectorAll("[name=status]:checked")].map((box) => box.value);
    return {
      statuses, type: form.elements.type.value, bedrooms: amount("bedrooms"),
      price: [amount("priceFrom"), amount("priceTo")], sqm: [amount("sqmFrom"), amount("sqmTo")],
    };
  }
  const within = (value, [least, most]) => (least === null || value >= least) && (most === null || value <= most);
  function fits(cell, wanted) {
    const [price, bedrooms, sqm, ...type] = cell.dataset.f.split("|");
    const status = cell.classList.contains("is-archived") ? "unavailable" : cell.className.match(/is-(\w+)/)[1];
    return (!wanted.statuses.length || wanted.statuses.includes(status))
      && (!wanted.type || wanted.type === type.join("|"))
      && (wanted.bedrooms === null || (bedrooms !== "" && Number(bedrooms) === wanted.bedrooms))
      && within(Number(price), wanted.price) && within(Number(sqm), wanted.sqm);
  }
  let matching = 0;
  function sift(cell, wanted) {
    const isIn = fits(cell, wanted);
    cell.classList.toggle("dim", !isIn);
    return isIn ? 1 : 0;
  }
  function tellMatching(wanted) {
    const isAny = wanted.statuses.length || wanted.type || [wanted.bedrooms, ...wanted.price, ...wanted.sqm].some((one) => one !== null);
    const told = form.querySelector("[data-matching]");
    told.textContent = isAny ? said(told.dataset.one, matching, units.size) : "";
    form.querySelector("[data-clear]").hidden = !isAny;
  }
  function filter() {
    const wanted = asked();
    matching = 0;
    for (const cell of units.values()) matching += sift(cell, wanted);
    tellMatching(wanted);
  }
  function address() {
    const values = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) values.append(name, value);
    const query = values.toString();
    return form.getAttribute("action") + (query ? `?${query}` : "");
  }
  let typing = 0;
  function changed(event) {
    if (event.target.name === "building") { form.requestSubmit(); return; }
    clearTimeout(typing);
    typing = setTimeout(() => {
      if (isTable) { location.replace(address()); return; }
      filter();
      history.replaceState(null, "", address());
    }, event.type === "input" && isTable ? 700 : 60);
  }
  form.addEventListener(isTable ? "change" : "input", changed);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    location.assign(address());
  });

  // From cell to cell

  let focused = null;
  function settleFocus() {
    for (const cell of units.values()) cell.tabIndex = -1;
    focused = units.get(focused?.firstChild?.textContent) ?? units.values().next().value ?? null;
    if (focused) focused.tabIndex = 0;
  }
  function moveTo(cell) {
    if (!cell) return;
    if (focused) focused.tabIndex = -1;
    focused = cell;
    cell.tabIndex = 0;
    cell.focus();
  }
  const cellsOf = (floor) => [...floor.querySelectorAll("a.u")];
  function beside(cell, step) {
    const all = cellsOf(cell.closest(".floor"));
    return all[all.indexOf(cell) + step];
  }
  function across(cell, step) {
    const floors = [...part().querySelectorAll(".floor")];
    const floor = floors[floors.indexOf(cell.closest(".floor")) + step];
    if (!floor) return null;
    const at = cell.offsetLeft;
    return cellsOf(floor).reduce((best, one) => (!best || Math.abs(one.offsetLeft - at) < Math.abs(best.offsetLeft - at) ? one : best), null);
  }
  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest?.("a.u");
    if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
    const onward = document.documentElement.dir === "rtl" ? -1 : 1;
    const next = {
      ArrowRight: () => beside(cell, onward), ArrowLeft: () => beside(cell, -onward),
      ArrowUp: () => across(cell, -1), ArrowDown: () => across(cell, 1),
      Home: () => cellsOf(cell.closest(".floor"))[0], End: () => cellsOf(cell.closest(".floor")).at(-1),
    }[event.key];
    if (!next) return;
    event.preventDefault();
    moveTo(next());
  });

  // What a cell is about, beside it

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);
  function showTip(cell) {
    if (cell.title) { cell.dataset.tip = cell.title; cell.removeAttribute("title"); cell.setAttribute("aria-description", cell.dataset.tip); }
    tip.replaceChildren();
    const code = document.createElement("strong");
    const name = document.createElement("bdi");
    name.textContent = cell.firstChild.textContent;
    code.append(name);
    tip.append(code);
    for (const fact of cell.dataset.tip.split(" · ")) {
      const line = document.createElement("span");
      line.textContent = fact;
      tip.append(line);
    }
    tip.className = `tip ${cell.className.match(/is-\w+/)[0]}`;
    tip.hidden = false;
    const box = cell.getBoundingClientRect();
    const over = box.top > tip.offsetHeight + 8;
    tip.style.top = `${over ? box.top - tip.offsetHeight - 6 : box.bottom + 6}px`;
    tip.style.left = `${Math.max(8, Math.min(box.left + box.width / 2 - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8))}px`;
  }
  const hideTip = () => { tip.hidden = true; };
  if (!isTable) {
    document.addEventListener("pointerover", (event) => {
      const cell = event.target.closest?.("a.u");
      if (cell && event.pointerType !== "touch") showTip(cell); else hideTip();
    });
    document.addEventListener("focusin", (event) => {
      const cell = event.target.closest?.("a.u");
      if (!cell) { hideTip(); return; }
      if (cell !== focused) { if (focused) focused.tabIndex = -1; focused = cell; cell.tabIndex = 0; }
      if (cell.matches(":focus-visible")) showTip(cell);
    });
    document.addEventListener("scroll", hideTip, true);
  }

  // News

  function fromHtml(html) {
    const made = document.createElement("template");
    made.innerHTML = html.trim();
    return made.content.firstElementChild;
  }
  // How many units the project has. On a board a unit that is not there is of another building, or new: only
  // then are there more of them.
  const sum = (shown) => shown.reduce((all, text) => all + Number(inLatin(text).replace(/\D/g, "")), 0);
  let total = sum([...form.querySelectorAll("[data-count]")].map((one) => one.textContent));
  function count(counts) {
    const told = sum(Object.values(counts));
    if (told === total || !Object.keys(counts).length) return;
    total = told;
    if (!isTable) wantsAll = true;
  }
  function isOfThisPage(code) {
    const after = new URLSearchParams(location.search).get("after") ?? "";
    const end = part().querySelector("[rel=next]") ? [...units.keys()].at(-1) : undefined;
    return code > after && (end === undefined || code <= end);
  }
  let wantsAll = false;
  function apply(changes) {
    count(changes.counts);
    for (const [status, number] of Object.entries(changes.counts)) {
      const shown = form.querySelector(`[data-count="${status}"]`);
      if (shown && shown.textContent !== number) { shown.textContent = number; flash(shown); }
    }
    const wanted = isTable ? null : asked();
    const buildings = new Set();
    for (const unit of changes.units) {
      const old = units.get(unit.code);
      if (!old) { if (isTable && unit.fits && isOfThisPage(unit.code)) wantsAll = true; continue; }
      if (unit.version < Number(old.dataset.v)) continue;
      if (isTable && !unit.fits) { old.remove(); units.delete(unit.code); continue; }
      const fresh = replace(old, fromHtml(unit.html), unit.code);
      if (isTable || fresh === old) continue;
      matching += sift(fresh, wanted) - (old.classList.contains("dim") ? 0 : 1);
      buildings.add(fresh.closest(".building"));
    }
    // Of thousands only those that are different are looked at: somebody may be scrolling.
    if (buildings.size) { tellMatching(wanted); countUnits(buildings); }
    if (wantsAll) showAll();
  }
  function countUnits(buildings) {
    for (const building of buildings) {
      const told = building.querySelector("[data-available]");
      if (!told) continue;
      told.textContent = said(told.dataset.available, building.querySelectorAll(".u.is-available").length, building.querySelectorAll(".u").length);
    }
  }
  const lookOf = (element) => (isTable ? element.querySelector(".status") : element).className.match(/is-\w+/)[0];
  function replace(old, fresh, code) {
    if (old.dataset.v === fresh.dataset.v && lookOf(old) === lookOf(fresh)) return old;
    if (isTable) fresh.querySelector(".floor-of").replaceWith(old.querySelector(".floor-of"));
    const hadFocus = document.activeElement === old;
    fresh.tabIndex = old.tabIndex;
    if (isTable) fresh.removeAttribute("tabindex");
    if (focused === old) focused = fresh;
    old.replaceWith(fresh);
    units.set(code, fresh);
    if (hadFocus) fresh.focus({ preventScroll: true });
    flash(fresh);
    return fresh;
  }
  function flash(element) {
    element.classList.add("fresh");
    setTimeout(() => element.classList.remove("fresh"), 1600);
  }

  // Everything anew, at most every two seconds: in a bulk import there is always more to come
  let askingSince = 0;
  let waiting = 0;
  let misses = 0;
  function showAll(delayMs = 0) {
    if (waiting) { wantsAll = true; return; }
    waiting = setTimeout(showAllNow, Math.max(delayMs, askingSince + 2000 - Date.now()));
  }
  async function showAllNow() {
    wantsAll = false;
    askingSince = Date.now();
    try {
      const answer = await fetch(location.href, { headers: { "HX-Request": "true", accept: "text/html" }, redirect: "error" });
      if (answer.headers.has("HX-Redirect")) { end(); return; }
      if (!answer.ok) throw new Error(answer.statusText);
      putInPlace(fromHtml(await answer.text()));
      misses = 0;
    } catch {
      wantsAll = true;
      misses += 1;
    }
    waiting = 0;
    if (wantsAll && !isOver) showAll(misses ? Math.min(30000, 1000 * 2 ** misses) * (0.75 + Math.random() / 2) : 0);
  }
  function putInPlace(fresh) {
    // Which building it is may be another one then, and what stands around the picture goes with it.
    if (form.elements.building && fresh.dataset.turn !== part().dataset.turn) { location.reload(); return; }
    const place = part().querySelector(".floors")?.scrollLeft;
    part().replaceWith(fresh);
    if (place) fresh.querySelector(".floors")?.scrollTo(place, 0);
    look();
    if (!isTable) filter();
    // What was told while it was under way may be newer than what it shows.
    last = fresh.dataset.since;
    if (stream) watch();
  }

  // The stream

  const QUIET_MS = 10000;
  let stream = null;
  let heardAt = Date.now();
  let last = part().dataset.since;
  let again = 0;
  let failures = 0;
  let isOver = false;
  function heard() {
    heardAt = Date.now();
    failures = 0;
    stale.hidden = true;
    live.classList.add("on");
  }
  function lost() {
    live.classList.remove("on");
    hideTip();
    stale.hidden = isOver || document.hidden;
  }
  function leave() {
    stream?.close();
    stream = null;
    clearTimeout(again);
    again = 0;
  }
  function end() {
    isOver = true;
    leave();
    lost();
    ended.hidden = false;
  }
  function watch() {
    leave();
    if (isOver) return;
    const query = new URLSearchParams(address().split("?")[1] ?? "");
    query.delete("building");
    query.set("view", isTable ? "table" : "board");
    query.set("since", last);
    query.set("turn", part().dataset.turn);
    stream = new EventSource(`${live.dataset.live.split("?")[0]}?${query}`);
    stream.addEventListener("heartbeat", (event) => {
      last = event.lastEventId;
      holdfast.setServerTime(JSON.parse(event.data).now);
      heard();
    });
    stream.addEventListener("units", (event) => apply(JSON.parse(event.data)));
    stream.addEventListener("everything", () => showAll(Math.random() * 500));
    stream.addEventListener("ended", end);
    stream.addEventListener("error", () => {
      leave();
      lost();
      failures += 1;
      again = setTimeout(watch, Math.min(5000, 500 * 2 ** failures) * (0.75 + Math.random() / 2));
    });
  }
  setInterval(() => {
    if (isOver || document.hidden || Date.now() - heardAt < QUIET_MS) return;
    lost();
    if (stream && Date.now() - heardAt > 2 * QUIET_MS) { heardAt = Date.now() - QUIET_MS; watch(); }
  }, 1000);

  // A browser keeps few connections to one server: a page that nobody sees gives its own back
  let hiding = 0;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(leave, 20000);
    else if (!stream) { heardAt = Date.now(); watch(); }
  });
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => { if (event.persisted) watch(); });

  look();
  if (!isTable) filter();
  watch();
})();
