// The page, at first and after each swap: forms that send themselves, a few keys, and what is on its way.
"use strict";
{
  const { root, FEW, charts, seen, load, drop, redrawAll, kept, chooseTheme } = hakaru;

  function prepare() {
    for (const element of [...charts.keys()]) if (!element.isConnected) drop(element);
    const waiting = document.querySelectorAll(".chart:not([data-drawn], [data-failed], [aria-busy])");
    for (const element of waiting) waiting.length > FEW ? seen.observe(element) : load(element);
    for (const each of document.querySelectorAll("[data-theme-switch]")) {
      each.hidden = false;
      const now = each.querySelector(`input[value="${kept()}"]`);
      if (now) now.checked = true;
    }
  }

  function busy(is) {
    root.classList.toggle("loading", is);
    const main = document.getElementById("main");
    if (main) main.toggleAttribute("aria-busy", is);
    if (main && is) main.setAttribute("aria-busy", "true");
  }

  // htmx may swap before the last script, which draws the charts, has come
  let ready = false;
  document.addEventListener("DOMContentLoaded", () => { ready = true; prepare(); });
  document.addEventListener("htmx:config:request", (event) => {
    const body = event.detail.ctx.request.body; // a form's empty fields say nothing
    if (body instanceof FormData) for (const [name, value] of [...body]) if (value === "") body.delete(name);
  });
  const isWhole = (event) => event.detail.ctx?.target?.id === "page";
  document.addEventListener("htmx:before:request", (event) => { if (isWhole(event)) busy(true); });
  document.addEventListener("htmx:finally:request", () => busy(false));
  document.addEventListener("htmx:after:swap", (event) => {
    const held = event.target.closest?.("[aria-busy]");
    if (held) held.removeAttribute("aria-busy");
    if (ready) prepare();
  });

  // A changed field sends its form. Enter changes and submits at once: one of the two is enough.
  // A date changes with every digit of its year: until there are four it is still being typed.
  const isTyped = (field) => field.type !== "date" || (!field.validity.badInput && !/^0/.test(field.value));
  let sending = 0;
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (event.target.name === "theme") {
      chooseTheme(event.target.value);
      redrawAll();
    } else if (form && "auto" in form.dataset && isTyped(event.target)) {
      sending = setTimeout(() => form.isConnected && form.requestSubmit(), 0);
    }
  });
  document.addEventListener("submit", () => clearTimeout(sending), true);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const field = document.getElementById("q") || document.getElementById("f-since");
      if (field) { event.preventDefault(); field.focus(); }
    }
  });

  Object.assign(hakaru, { busy });
}
