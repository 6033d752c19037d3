// Draws every figure of the report from the option beside it.
"use strict";
(() => {
  const charts = [];
  for (const element of document.querySelectorAll(".chart")) {
    element.style.height = element.dataset.height + "px";
    const chart = echarts.init(element, null, {
      renderer: "canvas",
      devicePixelRatio: Math.max(2, devicePixelRatio), // sharp in print as well
    });
    chart.setOption(JSON.parse(document.getElementById(element.dataset.option).textContent));
    charts.push(chart);
  }
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => charts.forEach((chart) => chart.resize()), 100);
  });
})();
