"use strict";
// Renews the page: it asks for itself, and takes over what has changed. Rows keep what a person did to them: folds, focus, marked text.
(() => {
  const every = 2000, lasts = 3; // ms; a row that is gone stays grey for so many renewals
  const live = document.getElementById("live"), button = document.getElementById("pause");
  let paused = false, timer = 0, asking = false;

  function say(text, off) {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("off", off);
  }

  // busy: somebody marks text in it.
  function busy(part) {
    const marked = document.getSelection();
    return marked && !marked.isCollapsed && marked.containsNode(part, true);
  }

  // name is what tells a link of a part from the others, also when it is renewed.
  const name = e => (e.closest("[data-key]")?.dataset.key ?? "") + " " + (e.getAttribute("href") ?? "") + " " + e.tagName;

  // keep calls change, and gives the focus back to what has it, if that is there yet.
  function keep(part, change) {
    const active = document.activeElement, held = part.contains(active) ? name(active) : null;
    change();
    if (held === null || document.activeElement === active) return;
    for (const e of part.querySelectorAll("a, summary, pre")) {
      if (name(e) === held) return e.focus({ preventScroll: true });
    }
  }

  const keyed = list => new Map([...list.children].filter(e => e.dataset.key).map(e => [e.dataset.key, e]));
  const inside = row => row.querySelector(":scope > details > [data-rows]");

  // rows has the rows of a list be those of the fresh one, in their order.
  function rows(list, fresh) {
    const old = keyed(list), now = keyed(fresh);
    for (const [key, row] of old) {
      if (now.has(key)) continue;
      row.dataset.gone = String(1 + Number(row.dataset.gone ?? 0));
      row.classList.add("gone");
      if (key === "none" || Number(row.dataset.gone) > lasts) row.remove();
    }
    let before = null;
    for (const [key, row] of now) {
      const here = old.get(key);
      const put = here ? same(here, row) : row;
      const next = before ? before.nextElementSibling : list.firstElementChild;
      if (put !== next && !(next && next.classList.contains("gone") && next.nextElementSibling === put)) {
        if (before) before.after(put); else list.prepend(put);
      }
      before = put;
    }
  }

  // same brings a row up to date, and returns what stands for it now.
  function same(here, row) {
    here.classList.remove("gone");
    delete here.dataset.gone;
    const a = inside(here), b = inside(row);
    if (!a !== !b) {
      here.replaceWith(row);
      return row;
    }
    if (here.dataset.v !== row.dataset.v) {
      here.dataset.v = row.dataset.v;
      if (!a) {
        here.replaceChildren(...row.childNodes);
        return here;
      }
      const old = here.querySelector(":scope > details > summary"), cells = row.querySelector(":scope > details > summary");
      old.className = cells.className;
      old.replaceChildren(...cells.childNodes);
    }
    if (a) rows(a, b);
    return here;
  }

  function take(part, fresh) {
    if (busy(part)) return;
    const a = part.querySelector(":scope > [data-rows]"), b = fresh.querySelector(":scope > [data-rows]");
    keep(part, () => {
      if (!a || !b) {
        if (part.innerHTML !== fresh.innerHTML) part.replaceChildren(...fresh.childNodes);
        return;
      }
      for (const s of [":scope > .shown", ":scope > .scale"]) {
        const text = part.querySelector(s), now = fresh.querySelector(s);
        if (text && now && text.innerHTML !== now.innerHTML) text.replaceChildren(...now.childNodes);
      }
      rows(a, b);
    });
  }

  async function renew() {
    clearTimeout(timer);
    if (asking || paused || document.hidden) return;
    asking = true;
    let wait = every;
    try {
      const began = performance.now();
      const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html" }, signal: AbortSignal.timeout(30000) });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const parts = fresh.querySelectorAll("[data-part]");
      if (parts.length === 0) throw new Error("another page");
      if (!paused) {
        for (const part of parts) {
          const here = document.querySelector('[data-part="' + part.dataset.part + '"]');
          if (here) take(here, part); else document.querySelector("main").append(part);
        }
        document.title = fresh.title;
        say("● Live", false);
      }
      wait = Math.max(every, 5 * (performance.now() - began));
    } catch (e) {
      if (!paused) say("No answer; this is from before", true);
    } finally {
      asking = false;
      timer = setTimeout(renew, wait);
    }
  }

  function pause() {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    say(paused ? "Paused" : "● Live", false);
    renew();
  }

  // Keys: / searches, p pauses, n goes to the next task with a problem, arrows fold and walk as in a tree of files.
  const summaries = () => [...document.querySelectorAll("summary")].filter(e => e.offsetParent !== null);
  function step(by) {
    const all = summaries(), at = all.indexOf(document.activeElement);
    (all[at + by] ?? all[at] ?? all[0])?.focus();
  }
  document.addEventListener("keydown", e => {
    if (e.ctrlKey || e.altKey || e.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
    const fold = document.activeElement?.tagName === "SUMMARY" ? document.activeElement.parentElement : null;
    if (e.key === "/") document.getElementById("search").focus();
    else if (e.key === "p") pause();
    else if (e.key === "n") {
      const marked = [...document.querySelectorAll(".row .mark")].map(m => m.closest(".row"));
      const at = marked.findIndex(r => "#" + r.id === location.hash);
      if (marked.length) location.hash = marked[(at + 1) % marked.length].id;
    } else if (fold && e.key === "ArrowDown") step(1);
    else if (fold && e.key === "ArrowUp") step(-1);
    else if (fold && e.key === "ArrowRight") fold.open = true;
    else if (fold && e.key === "ArrowLeft") fold.open = false;
    else return;
    e.preventDefault();
  });

  // Of a form only what was filled in becomes part of the address.
  document.querySelector("form.filter")?.addEventListener("submit", e => {
    for (const f of e.target.elements) if (f.value === "") f.disabled = true;
  });

  button.hidden = false;
  button.addEventListener("click", pause);
  if (new URLSearchParams(location.search).has("still")) pause();
  else say("● Live", false);
  document.addEventListener("visibilitychange", renew);
  if (!paused) timer = setTimeout(renew, every);
})();
