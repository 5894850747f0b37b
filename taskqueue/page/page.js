"use strict";
// Renews the page: it asks for itself, and takes over the parts that have changed.
(() => {
  const every = 2000; // ms
  const live = document.getElementById("live");
  const button = document.getElementById("pause");
  let paused = false, timer = 0, asking = false, pressed = null;

  function say(text, off) {
    if (live.textContent !== text) live.textContent = text;
    live.classList.toggle("off", off);
  }

  // busy: somebody marks text in it, is about to answer a question, or presses something: it is clicked only if it is
  // there yet when it is let go.
  function busy(part) {
    const marked = document.getSelection();
    return marked && !marked.isCollapsed && marked.containsNode(part, true) || part.querySelector("details[open]") !== null || part.contains(pressed);
  }

  // name is what tells a link or a button of a part from the others, also when it is renewed.
  const name = e => e.getAttribute("href") || e.getAttribute("aria-label") || e.textContent;
  const reached = "a, button, summary, pre";

  // take puts what is new in a part. The focus stays.
  function take(part, fresh) {
    if (busy(part) || part.innerHTML === fresh.innerHTML) return;
    const active = document.activeElement, held = part.contains(active) ? [active.tagName, name(active)] : null;
    part.replaceChildren(...fresh.childNodes);
    if (held === null) return;
    for (const e of part.querySelectorAll(reached)) {
      if (e.tagName === held[0] && name(e) === held[1]) return e.focus({ preventScroll: true });
    }
  }

  async function renew() {
    clearTimeout(timer);
    if (asking || paused || document.hidden) return;
    asking = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const parts = fresh.querySelectorAll("[data-part]");
      if (parts.length === 0) throw new Error("another page");
      if (!paused) {
        if (parts.length !== document.querySelectorAll("[data-part]").length) {
          location.reload(); // the store answers for the first time
          return;
        }
        for (const part of parts) take(document.querySelector('[data-part="' + part.dataset.part + '"]'), part);
        document.title = fresh.title;
        say("Live", false);
      }
    } catch (e) {
      if (!paused) say("taskq serve does not answer; this is from before", true);
    } finally {
      asking = false;
      timer = setTimeout(renew, every);
    }
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    say(paused ? "Paused" : "Live", false);
    renew();
  });
  document.addEventListener("visibilitychange", renew);
  document.addEventListener("pointerdown", e => { pressed = e.target; }, true);
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => { pressed = null; }, true);
  say("Live", false);
  timer = setTimeout(renew, every);
})();
