"use strict";
// Plays the recording that a saved page has in it: which tasks were under way at a moment.
(async () => {
  const data = document.getElementById("recording"), box = document.getElementById("player");
  const line = document.querySelector(".timeline");
  if (!data || !box || !line || !window.DecompressionStream) return;
  const bytes = Uint8Array.from(atob(data.textContent), c => c.charCodeAt(0));
  const text = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  const from = Number(line.dataset.from), to = Number(line.dataset.to), tasks = [];
  for (const l of text.split("\n")) {
    if (l === "") continue;
    const { event, live } = JSON.parse(l);
    if (event) {
      const end = Date.parse(event.ended);
      tasks.push({ name: event.task, begun: end - event.took_ns / 1e6, end, outcome: event.outcome });
    } else if (live && live.begun) {
      tasks.push({ name: live.task, begun: Date.parse(live.begun), end: Infinity, outcome: "" });
    }
  }

  const moment = document.getElementById("moment"), play = document.getElementById("play");
  const at = document.getElementById("at"), then = document.getElementById("then");
  const rows = [...line.querySelectorAll(".line")].map(e => ({ e, begun: Number(e.dataset.b), end: Number(e.dataset.e) }));

  // most names the tasks of a list, alike ones together, those there are most of first.
  function most(list) {
    const counts = new Map();
    for (const t of list) {
      const name = t.name.replace(/\d+/g, "#");
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
    const all = [...counts].sort((a, b) => b[1] - a[1]);
    const named = all.slice(0, 8).map(([name, n]) => n === 1 ? name : n + " × " + name).join(", ");
    return all.length > 8 ? named + " and others" : named;
  }

  function show() {
    const ms = (to - from) * Number(moment.value) / 1000, now = from + ms;
    at.value = new Date(now).toLocaleTimeString() + ", " + (ms / 1000).toFixed(3) + " s after the begin";
    const under = tasks.filter(t => t.begun <= now && t.end > now);
    const over = tasks.filter(t => t.end <= now && t.end > now - 1000 && t.outcome !== "ok" && t.outcome !== "cancelled");
    then.textContent = under.length + " recorded tasks were under way" + (under.length ? ": " + most(under) : "") +
      (over.length ? ". Failed in the second before: " + most(over) : "") + ".";
    for (const r of rows) {
      r.e.classList.toggle("ahead", r.begun > ms);
      r.e.classList.toggle("under", r.begun <= ms && (r.end < 0 || r.end > ms));
    }
  }

  let timer = 0;
  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }
  play.addEventListener("click", () => {
    if (timer) return stop();
    if (Number(moment.value) >= 1000) moment.value = 0;
    play.textContent = "Pause";
    timer = setInterval(() => { // the whole takes ten seconds
      moment.value = Number(moment.value) + 10;
      show();
      if (Number(moment.value) >= 1000) stop();
    }, 100);
    show();
  });
  moment.addEventListener("input", show);
  box.hidden = false;
  show();
})();
