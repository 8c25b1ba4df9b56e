"use strict";
(() => {
// A plot is a slider over its values. The pointer and the arrow keys choose a value, and the legend
// above the plot shows it.
const chosen = new Map(); // the X that the reader chose, by the id of the figure

function ready(plot) {
  const figure = plot.closest("figure"), plane = plot.querySelector(".plane");
  const places = plot.dataset.places.split(" ").map(Number), xs = plot.dataset.xs.split("|");
  const lines = [...plane.querySelectorAll("[data-texts]")].map(p => ({name: p.dataset.name, texts: p.dataset.texts.split("|")}));
  const shown = figure.querySelectorAll(".key b"), at = figure.querySelector(".at b"), cursor = plane.querySelector(".cursor");
  const last = places.length - 1, latest = [...shown].map(b => b.textContent);
  const name = plot.querySelector(".xname").textContent;

  function show(i, mark) {
    cursor.setAttribute("d", mark ? `M${places[i]} 0V1000` : "");
    shown.forEach((b, k) => { b.textContent = mark ? lines[k].texts[i] || "–" : latest[k]; });
    at.textContent = xs[i];
    const values = lines.filter(l => l.texts[i]).slice(0, 12).map(l => `${l.name} ${l.texts[i]}`);
    plot.setAttribute("aria-valuenow", i);
    plot.setAttribute("aria-valuetext", `${name} ${xs[i]}: ${values.join(", ") || "no value"}`);
  }
  function choose(i) {
    i = Math.min(Math.max(i, 0), last);
    chosen.set(figure.id, xs[i]);
    show(i, true);
  }
  function leave() {
    chosen.delete(figure.id);
    show(last, false);
  }
  plot.id = figure.id + "-plot";
  plot.tabIndex = 0;
  plot.setAttribute("role", "slider");
  plot.setAttribute("aria-label", figure.querySelector("figcaption span").textContent + ": values");
  plot.setAttribute("aria-valuemin", 0);
  plot.setAttribute("aria-valuemax", last);
  const before = chosen.has(figure.id) ? xs.indexOf(chosen.get(figure.id)) : -1;
  show(before < 0 ? last : before, before >= 0);

  function point(event) {
    const box = plane.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * 1000;
    let best = 0;
    places.forEach((p, i) => { if (Math.abs(p - x) < Math.abs(places[best] - x)) best = i; });
    choose(best);
  }
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("pointerleave", e => { if (e.pointerType === "mouse" && document.activeElement !== plot) leave(); });
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", event => {
    const now = Number(plot.getAttribute("aria-valuenow")), far = Math.max(Math.round(last / 10), 1);
    const to = {ArrowLeft: now - 1, ArrowDown: now - 1, ArrowRight: now + 1, ArrowUp: now + 1,
      PageDown: now - far, PageUp: now + far, Home: 0, End: last}[event.key];
    if (event.key === "Escape") leave();
    else if (to !== undefined) choose(to);
    else return;
    event.preventDefault();
  });
}

const sources = new Map(); // each part as it was sent, before ready changes it
document.querySelectorAll("[data-part]").forEach(p => sources.set(p.id, p.outerHTML));
document.querySelectorAll(".plot").forEach(ready);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(d => { d.open = true; }));

// A served page asks for its next state, and replaces the parts that changed.
const notice = document.getElementById("notice"), root = document.documentElement;
let failures = 0, tag = "";

function tell(text, again) {
  notice.replaceChildren();
  notice.hidden = !text;
  if (!text) return;
  const span = document.createElement("span");
  span.textContent = text;
  if (again) {
    const button = document.createElement("button");
    button.textContent = "Ask again";
    button.addEventListener("click", () => { failures = 0; tell(""); ask(); });
    span.append(button);
  }
  notice.append(span);
}

function replace(fresh) {
  const names = doc => [...doc.querySelectorAll("[data-part]")].map(e => e.id).join();
  if (names(document) !== names(fresh)) { // the list of parts differs: replace all of them
    const main = document.importNode(fresh.querySelector("main"), true);
    keep(document.querySelector("main"), main);
  }
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = document.getElementById(part.id);
    if (old && sources.get(part.id) !== part.outerHTML) {
      sources.set(part.id, part.outerHTML);
      keep(old, document.importNode(part, true));
    }
  }
  document.title = fresh.title;
}

// keep replaces an element. The focus, open details and scrolled tables stay as they are.
function keep(old, now) {
  const focus = document.activeElement && old.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...old.querySelectorAll("details[open]")].map(d => d.id);
  const scrolled = [...old.querySelectorAll(".scroll")].map(s => [s.id, s.scrollLeft]);
  const picked = new Map(chosen);
  old.replaceWith(now);
  picked.forEach((v, k) => chosen.set(k, v));
  open.forEach(id => { const d = document.getElementById(id); if (d) d.open = true; });
  now.querySelectorAll(".plot").forEach(ready);
  scrolled.forEach(([id, x]) => { const s = document.getElementById(id); if (s && x) s.scrollLeft = x; });
  const target = focus && document.getElementById(focus);
  if (target) target.focus({preventScroll: true});
}

async function ask() {
  let wait = Number(root.dataset.poll);
  try {
    const answer = await fetch(location.pathname, {cache: "no-store", headers: tag ? {"If-None-Match": tag} : {}, signal: AbortSignal.timeout(15000)});
    if (answer.status === 503) { // the server is busy: wait longer
      wait = wait * 2 + Math.random() * 3 * wait;
    } else if (answer.status !== 304) {
      if (!answer.ok) throw new Error(answer.status);
      tag = answer.headers.get("ETag") || "";
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!fresh.querySelector("main")) throw new Error("no page");
      replace(fresh);
      if (!fresh.documentElement.dataset.poll) { // no run goes on any more
        delete root.dataset.poll;
        tell("");
        return;
      }
      root.dataset.poll = fresh.documentElement.dataset.poll;
    }
    failures = 0;
    tell("");
  } catch (error) {
    failures++;
    if (failures > 4) {
      const time = document.querySelector("footer time");
      tell(`The server no longer answers: the training has ended or was stopped. This page is from ${time ? time.textContent : "before"}. `, true);
      return;
    }
    wait *= 1 + failures / 2;
  }
  setTimeout(ask, document.hidden ? wait * 5 : wait);
}

if (root.dataset.poll) setTimeout(ask, Number(root.dataset.poll));
})();
