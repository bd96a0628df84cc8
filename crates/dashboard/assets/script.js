// What pages do beyond plain HTML: times in the reader's zone, copying, the menu of narrow screens, fragments that renew
// themselves. Every page works without it, but for what is live.
"use strict";

const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" });

/** The short name of the reader's time zone at a time, such as GMT+2. */
function zoneName(at) {
  return zone.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "local time";
}

/** Shows every time in the reader's zone; UTC stays on hover. Tables leave the zone to the foot of the page. */
function showTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const text = time.format(at);
    element.textContent = element.closest("table") ? text : `${text} ${zoneName(at)}`;
  }
  for (const element of within.querySelectorAll("[data-zone]")) {
    const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const short = zoneName(new Date());
    element.textContent = `Times are in your time zone: ${name}${short === name ? "" : ` (${short})`}.`;
  }
}

/** A time as fields of forms write it. `shift` is 1 from UTC to the reader's zone, and -1 back. */
function shifted(value, shift) {
  const at = new Date(shift > 0 ? `${value}Z` : value);
  if (Number.isNaN(at.getTime())) return value;
  if (shift < 0) return at.toISOString().slice(0, value.length);
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60000);
  return local.toISOString().slice(0, value.length);
}

/** Lets times be typed in the reader's zone; the server gets UTC. Labels name the zone as it is at the typed time. */
function offerLocalTimes(within) {
  for (const input of within.querySelectorAll("input[type=datetime-local]")) {
    if (input.defaultValue) input.value = shifted(input.defaultValue, 1);
    const labels = [input.labels?.[0]?.firstChild, document.getElementById(`${input.id}-rule`)?.firstChild].filter(Boolean);
    const texts = labels.map((label) => label.nodeValue);
    const nameZone = () => {
      const at = new Date(input.value);
      const name = zoneName(Number.isNaN(at.getTime()) ? new Date() : at);
      labels.forEach((label, place) => {
        label.nodeValue = texts[place].replace("(UTC)", `(${name})`).replace("is UTC", `is in your time zone (${name})`);
      });
    };
    nameZone();
    input.addEventListener("input", nameZone);
  }
}

/** Gives every cell the name of its column, which narrow screens show beside it. */
function nameCells(within) {
  for (const table of within.querySelectorAll(".table > table")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => (head.querySelector(".unseen") ? "" : head.textContent.trim()));
    if (names.length < 3) continue;
    table.classList.add("cards");
    table.role = "table";
    for (const part of table.querySelectorAll("thead, tbody, tfoot")) part.role = "rowgroup";
    for (const row of table.querySelectorAll("tr")) row.role = "row";
    for (const head of table.querySelectorAll("thead th")) head.role = "columnheader";
    for (const cell of table.querySelectorAll("tbody th, tbody td, tfoot td")) cell.role = "cell";
    for (const row of table.querySelectorAll("tbody tr, tfoot tr")) {
      let place = 0;
      for (const cell of row.cells) {
        if (cell.colSpan === 1) cell.dataset.label = names[place] ?? "";
        place += cell.colSpan;
      }
    }
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

/** Puts a chosen template into the text. */
function offerTemplates(within) {
  for (const select of within.querySelectorAll("select[data-fill]")) {
    select.addEventListener("change", () => {
      const text = select.selectedOptions[0]?.dataset.text;
      const field = document.getElementById(select.dataset.fill);
      if (text === undefined || !field) return;
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }
}

/** Hides what only those without a script need. */
function hideSpare(within) {
  for (const element of within.querySelectorAll("[data-check]")) element.hidden = true;
}

function enliven(within) {
  showTimes(within);
  nameCells(within);
  offerCopies(within);
  offerFiles(within);
  offerTemplates(within);
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

/** Ctrl K goes to the search in the header; `/` goes to the first filter, unless somebody types. */
function offerShortcut(event) {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey) {
    const search = document.getElementById("find");
    if (!search) return;
    event.preventDefault();
    search.select();
    search.focus();
    return;
  }
  const types = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || types) return;
  const field = document.querySelector(".filters input, .filters select");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

/** Folds the groups of the menu as the reader left them. The group of this page stays open. */
function rememberFolds() {
  for (const group of document.querySelectorAll("details[data-fold]")) {
    const key = `fold ${group.dataset.fold}`;
    const left = localStorage.getItem(key);
    if (left !== null && !group.querySelector("[aria-current]")) group.open = left === "open";
    // At the click, the group is as it was before.
    group.querySelector("summary").addEventListener("click", () => localStorage.setItem(key, group.open ? "folded" : "open"));
  }
}

enliven(document);
rememberFolds();
offerLocalTimes(document);
document.addEventListener("formdata", (event) => {
  for (const input of event.target.querySelectorAll("input[type=datetime-local]")) {
    if (input.name && input.value) event.formData.set(input.name, shifted(input.value, -1));
  }
});
document.querySelectorAll("[data-live]").forEach(follow);
document.querySelectorAll("form[data-measure]").forEach(measure);
document.addEventListener("keydown", offerShortcut);
document.addEventListener("click", (event) => {
  // The table of a chart has the same links.
  const bar = event.target.closest?.("g[data-href]");
  if (bar) window.location.assign(bar.dataset.href);
});
window.addEventListener("pageshow", (event) => {
  if (event.persisted) document.querySelectorAll("[data-live]").forEach(follow);
});
