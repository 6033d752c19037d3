// Draws every figure of the page from the option beside it; in the dark where it has a dark one too.
"use strict";
(() => {
  const charts = [];
  const night = matchMedia("(prefers-color-scheme: dark)");
  const optionOf = (element, dark) =>
    JSON.parse(document.getElementById((dark && element.dataset.dark) || element.dataset.option).textContent);
  for (const element of document.querySelectorAll(".chart")) {
    element.style.height = element.dataset.height + "px";
    const chart = echarts.init(element, null, {
      renderer: "canvas",
      devicePixelRatio: Math.max(2, devicePixelRatio), // sharp in print as well
    });
    charts.push([chart, element]);
  }
  const draw = (dark) => {
    for (const [chart, element] of charts) {
      chart.clear();
      chart.setOption(optionOf(element, dark));
    }
  };
  draw(night.matches);
  night.addEventListener("change", () => draw(night.matches));
  if (night.matches) {
    addEventListener("beforeprint", () => draw(false)); // paper is white
    addEventListener("afterprint", () => draw(night.matches));
  }
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach(([chart]) => chart.resize()), 100);
  });
})();
