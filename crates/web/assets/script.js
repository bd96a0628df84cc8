// What pages do beyond plain HTML: times in the reader's zone, copying, the menu of narrow screens, fragments that renew
// themselves. Every page works without it, but for what is live.
"use strict";

const time = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Shows every moment in the reader's zone; UTC stays on hover. */
function showTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (!Number.isNaN(at.getTime())) element.textContent = time.format(at);
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

/** Asks before what cannot be undone. */
function askBefore(within) {
  for (const form of within.querySelectorAll("form[data-ask]")) {
    form.addEventListener("submit", (event) => {
      if (!window.confirm(form.dataset.ask)) event.preventDefault();
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

function enliven(within) {
  showTimes(within);
  offerCopies(within);
  askBefore(within);
  offerFiles(within);
}

enliven(document);
