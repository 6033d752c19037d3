// The charts: fetched when they come into view, drawn, suited to the width, and drawn again in other colours.
"use strict";
{
  const { isDark, jobsAddress, leadFromColumns, brushed } = hakaru;
  const FEW = 4; // figures that are drawn at once, so that they are there to be printed
  const charts = new Map(); // element -> { chart, drawing }

  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      seen.unobserve(entry.target);
      load(entry.target);
    }
  }, { rootMargin: "300px" });

  async function load(element) {
    element.setAttribute("aria-busy", "true");
    const dark = isDark();
    const address = element.dataset.figure + (element.dataset.figure.includes("?") ? "&" : "?") + "dark=" + dark;
    try {
      const answer = await fetch(address, { headers: { Accept: "application/json" } });
      const body = await answer.json();
      if (!element.isConnected) return;
      if (!answer.ok) fail(element, [body.detail, body.fix].filter(Boolean).join(". "));
      else if (dark !== isDark()) load(element);
      else draw(element, body);
    } catch {
      if (element.isConnected) fail(element, "The figure could not be fetched. Load the page again");
    } finally {
      element.removeAttribute("aria-busy");
    }
  }

  function fail(element, text) {
    drop(element);
    element.dataset.failed = "";
    delete element.dataset.drawn;
    const told = document.createElement("p");
    told.className = "refused";
    told.textContent = text + ".";
    element.replaceChildren(told);
  }

  function draw(element, drawing) {
    drop(element);
    element.replaceChildren();
    element.style.height = drawing.height + "px";
    element.dataset.drawn = drawing.kind;
    tell(element, drawing);
    const chart = echarts.init(element, null, { renderer: "canvas" });
    chart.setOption(suited(drawing.option, element.clientWidth));
    charts.set(element, { chart, drawing });
    chart.on("click", (event) => {
      const where = event.data && event.data.where;
      if (where) location.assign(jobsAddress(element, where));
    });
    if (drawing.kind === "mean-deviation") leadFromColumns(element, chart, drawing.option);
    chart.on("mouseover", (event) => {
      const leads = Boolean(event.data && event.data.where);
      chart.getZr().setCursorStyle(leads ? "pointer" : "default");
    });
    chart.on("axisareaselected", () => brushed(element, chart));
  }

  // A tooltip of HTML would need style attributes, which the page's policy forbids: it is drawn.
  function suited(option, width) {
    const tooltip = { ...option.tooltip, renderMode: "richText" };
    return { ...drawable(option), tooltip, ...narrowed(option, width), ...labelled(option, width) };
  }

  // What JSON cannot hold: how a shape of our own is drawn. A bar reaches from (0, 2) to (1, 3).
  const SHAPES = {
    bar(params, api) {
      const [left, top] = api.coord([api.value(0), api.value(2)]);
      const [right, bottom] = api.coord([api.value(1), api.value(3)]);
      const box = { x: left, y: Math.min(top, bottom), width: Math.max(right - left - 0.5, 0.75), height: Math.max(Math.abs(bottom - top) - 0.5, 0.5) };
      const shape = echarts.graphic.clipRectByRect(box, params.coordSys);
      return shape && { type: "rect", shape, style: { fill: api.visual("color") }, emphasis: { style: { opacity: 0.7 } } };
    },
  };
  function drawable(option) {
    const shaped = (series) => (SHAPES[series.renderItem] ? { ...series, renderItem: SHAPES[series.renderItem] } : series);
    return Array.isArray(option.series) ? { ...option, series: option.series.map(shaped) } : option;
  }

  // Few names on an axis are all written, broken where they are long.
  function labelled(option, width) {
    const axis = option.xAxis;
    if (!axis || Array.isArray(axis) || axis.type !== "category" || axis.data.length > 8) return {};
    const room = Math.floor((width - 100) / axis.data.length) - 6;
    return { xAxis: { ...axis, axisLabel: { ...axis.axisLabel, interval: 0, hideOverlap: false, width: room, overflow: "break" } } };
  }

  // What was laid out for a page is pulled in where a phone has no room for wide margins.
  function narrowed(option, width) {
    if (width >= 480) return {};
    const fit = (grid) => ({
      ...grid,
      ...(typeof grid.left === "number" ? { left: Math.min(grid.left, 64) } : {}),
      ...(typeof grid.right === "number" ? { right: Math.min(grid.right, 16) } : {}),
    });
    const each = (value, change) => (Array.isArray(value) ? value.map(change) : change(value));
    return {
      ...(option.grid ? { grid: each(option.grid, fit) } : {}),
      ...(option.parallelAxis ? {
        parallelAxis: option.parallelAxis.map((axis, i) => ({
          ...axis, name: axis.name.replace(" (hours)", ", h"), nameGap: i % 2 ? 30 : 12, nameTextStyle: { ...axis.nameTextStyle, fontSize: 10 },
        })),
      } : {}),
    };
  }

  function tell(element, drawing) {
    const behind = element.parentElement.querySelector("[data-behind]");
    if (behind && drawing.where) behind.href = jobsAddress(element, drawing.where);
    const list = element.parentElement.querySelector("[data-notes]");
    if (!list) return;
    list.replaceChildren(...notesOf(drawing).map((note) => {
      const item = document.createElement("li");
      item.append(...note.split("`").map((text, i) => i % 2 ? code(text) : text));
      return item;
    }));
  }

  function code(text) {
    const element = document.createElement("code");
    element.textContent = text;
    return element;
  }

  const notesOf = ({ notes, withheld }) => [...notes, ...(withheld ? [withheld.why] : [])];

  function drop(element) {
    const found = charts.get(element);
    if (found) found.chart.dispose();
    charts.delete(element);
  }

  function redrawAll() {
    for (const element of [...charts.keys()]) element.isConnected ? load(element) : drop(element);
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

  Object.assign(hakaru, { FEW, charts, seen, load, drop, redrawAll, suited, drawable, notesOf });
}
