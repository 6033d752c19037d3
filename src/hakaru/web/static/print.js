// Charts fitted to the window and to paper.
"use strict";
{
  const { root, FEW, charts, seen, load, redrawAll, suited, isDark, applyTheme, kept, busy } = hakaru;

  function fitAll() {
    const paper = root.classList.contains("paper"); // two figures stand on a sheet; panels have a height of their own
    charts.forEach(({ chart, drawing }, element) => {
      const bends = paper && drawing.option.grid && !Array.isArray(drawing.option.grid);
      element.style.height = Math.round(drawing.height * (bends ? 0.72 : 1)) + "px";
      chart.resize();
      chart.setOption(suited(drawing.option, element.clientWidth), true);
      chart.getZr().flush(); // a printer does not wait for the next frame
      flatten(element, paper);
    });
  }

  // Of a chart's layers Chromium prints the last one only: on paper all are drawn onto the first.
  function flatten(element, paper) {
    const [base, ...layers] = element.querySelectorAll("canvas");
    for (const layer of layers) {
      layer.style.visibility = paper ? "hidden" : "";
      if (!paper || !layer.width) continue;
      const context = base.getContext("2d");
      context.save();
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.drawImage(layer, 0, 0);
      context.restore();
    }
  }

  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(fitAll, 120);
  });

  // A browser does not wait for what is fetched, so the page fetches before it asks to print.
  const atRest = ".chart:not([data-drawn], [data-failed])";
  const onPaper = (is) => { root.classList.toggle("paper", is); fitAll(); };
  addEventListener("beforeprint", () => onPaper(true));
  addEventListener("afterprint", () => onPaper(false));
  async function printAll() {
    busy(true);
    const all = [...document.querySelectorAll(isDark() ? ".chart:not([data-failed])" : atRest)];
    root.dataset.theme = "light"; // as paper is
    for (const element of all) seen.unobserve(element);
    const next = async () => { for (let each; (each = all.shift()); ) await load(each); };
    await Promise.all(Array.from({ length: FEW }, next));
    busy(false);
    const onScreen = () => { applyTheme(kept()); if (isDark()) redrawAll(); };
    addEventListener("afterprint", onScreen, { once: true });
    print();
  }
  document.addEventListener("click", (event) => { if (event.target.closest?.("[data-print]")) printAll(); });
  document.addEventListener("keydown", (event) => {
    const asks = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key === "p";
    if (asks && document.querySelector(atRest)) { event.preventDefault(); printAll(); }
  });
}
