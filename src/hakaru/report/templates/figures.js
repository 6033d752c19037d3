// Draws every figure of the report when it comes near the screen, and all of them before printing.
"use strict";
(() => {
  const charts = new Map();

  function paint(element) {
    if (charts.has(element)) return;
    const option = JSON.parse(document.getElementById(element.dataset.option).textContent);
    element.style.height = element.dataset.height + "px";
    const chart = echarts.init(element, null, { renderer: "canvas", devicePixelRatio: Math.max(2, devicePixelRatio) });
    chart.setOption(option);
    charts.set(element, chart);
  }

  const figures = [...document.querySelectorAll(".chart")];
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) paint(entry.target);
  }, { rootMargin: "800px" });
  for (const element of figures) {
    element.style.height = element.dataset.height + "px";
    near.observe(element);
  }
  addEventListener("beforeprint", () => figures.forEach(paint));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { for (const chart of charts.values()) chart.resize(); }, 100);
  });
})();
