// What pages do beyond plain HTML: times in the reader's zone, copying, the menu of narrow screens, fragments that renew
// themselves. Every page works without it, but for what is live.
"use strict";

const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const thisYear = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "numeric", minute: "2-digit", second: "2-digit" });

/** Shows every moment in the reader's zone; UTC stays on hover. */
function showTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const format = at.getFullYear() === new Date().getFullYear() ? thisYear : time;
    element.textContent = format.format(at);
  }
}

/** Lets every block of code be copied. */
function offerCopies(within) {
  for (const button of within.querySelectorAll("button[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("code").textContent;
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }
}

/** Reads a chosen file into the text field beside it. */
function offerFiles(within) {
  for (const input of within.querySelectorAll("input[type=file][data-into]")) {
    input.parentElement.hidden = false;
    input.addEventListener("change", async () => {
      const file = input.files[0];
      if (file) document.getElementById(input.dataset.into).value = await file.text();
    });
  }
}

/** Hides what only those without a script need. */
function hideSpare(within) {
  for (const element of within.querySelectorAll("[data-check]")) element.hidden = true;
}

function enliven(within) {
  showTimes(within);
  offerCopies(within);
  offerFiles(within);
  hideSpare(within);
}

/** What a server sent, ready to be looked at: with times in the reader's zone, so that equal means equal. */
function parse(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  enliven(template.content);
  return template.content;
}

/**
 * Makes an element's content like another's. Every node that stays is kept, so focus, selection, scrolling and what was
 * folded open stay too. Elements with an ID are known by it, others by their place.
 */
function become(old, fresh) {
  const named = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let at = old.firstChild;
  const staying = new Set([...fresh.children].map((child) => child.id));
  for (const next of [...fresh.childNodes]) {
    while (at?.id && !staying.has(at.id)) at = remove(at);
    const sameKind = at && !at.id && at.nodeName === next.nodeName ? at : undefined;
    const same = next.id ? named.get(next.id) : sameKind;
    if (!same) {
      old.insertBefore(next, at);
      continue;
    }
    if (same === at) at = at.nextSibling;
    else old.insertBefore(same, at);
    if (same.isEqualNode(next)) continue;
    if (same.nodeType !== Node.ELEMENT_NODE) {
      same.nodeValue = next.nodeValue;
      continue;
    }
    for (const { name } of [...same.attributes]) {
      if (name !== "open" && !next.hasAttribute(name)) same.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (same.getAttribute(name) !== value) same.setAttribute(name, value);
    }
    become(same, next);
  }
  while (at) at = remove(at);
}

/** Removes a node and goes on to the one behind it. */
function remove(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

/** Renews an element whenever its stream says so, and tells quietly whether there is one. */
function follow(element) {
  const state = document.querySelector("[data-live-state]");
  const say = (text) => { if (state && state.textContent !== text) state.textContent = text; };
  const source = new EventSource(element.dataset.live);
  source.addEventListener("open", () => say("Live"));
  source.addEventListener("renew", (event) => become(element, parse(event.data)));
  source.addEventListener("last", (event) => {
    become(element, parse(event.data));
    source.close();
    say("");
  });
  source.addEventListener("error", () => {
    say("Not live, trying again…");
    // A browser connects again by itself, but not after an answer that is no stream: too many, or signed out.
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(() => follow(element), 5000);
  });
  // A page that is left needs no stream; one that is come back to does.
  window.addEventListener("pagehide", () => source.close(), { once: true });
}

/** Says what a form would cost, while it is filled in. */
function measure(form) {
  const shown = form.querySelector("[data-measured]");
  let waiting;
  let asking;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      asking?.abort();
      asking = new AbortController();
      const body = new URLSearchParams(new FormData(form));
      body.set("part", "1");
      try {
        const answer = await fetch(form.dataset.measure, { method: "POST", body, signal: asking.signal });
        if (answer.ok) become(shown, parse(await answer.text()));
      } catch {
        // The next letter asks again.
      }
    }, 200);
  });
}

/** `/` goes to the first filter, or to the first field, unless somebody types. */
function offerShortcut(event) {
  const types = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || types) return;
  const field = document.querySelector(".filters input, .filters select");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

enliven(document);
document.querySelectorAll("[data-live]").forEach(follow);
document.querySelectorAll("form[data-measure]").forEach(measure);
document.addEventListener("keydown", offerShortcut);
window.addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("[data-live]").forEach(follow);
});
