// What the pages do beyond links and forms: the theme, the charts and where they lead, and a few keys.
"use strict";
(() => {
  const root = document.documentElement;
  const THEME = "hakaru-theme";
  const FEW = 4; // figures that are drawn at once, so that they are there to be printed
  const charts = new Map(); // element -> { chart, drawing }
  root.classList.add("scripted");

  // --- theme: the choice stays in this browser; "system" is no choice
  const kept = () => {
    try { return localStorage.getItem(THEME) || "system"; } catch { return "system"; }
  };
  const isDark = () => {
    const theme = root.dataset.theme;
    return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  };
  function applyTheme(theme) {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  }
  function chooseTheme(theme) {
    try { localStorage.setItem(THEME, theme); } catch { /* a browser that keeps nothing */ }
    applyTheme(theme);
    redrawAll();
  }
  applyTheme(kept());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawAll);

  // --- charts
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

  // The whole column of an hour or a day leads to its jobs: its point alone is hard to hit.
  function leadFromColumns(element, chart, option) {
    const lines = option.series.filter((series) => series.type === "line");
    if (lines.length !== 1) return;
    chart.getZr().on("click", (event) => {
      const at = [event.offsetX, event.offsetY];
      if (!chart.containPixel({ gridIndex: 0 }, at)) return;
      const item = lines[0].data[Math.round(chart.convertFromPixel({ gridIndex: 0 }, at)[0])];
      if (item && item.where) location.assign(jobsAddress(element, item.where));
    });
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
      item.textContent = note;
      return item;
    }));
  }

  const notesOf = ({ notes, withheld }) => [...notes, ...(withheld ? [withheld.why] : [])];

  function jobsAddress(element, where) {
    const address = new URL(element.dataset.jobs, location.href);
    const mine = element.dataset.where;
    const rest = fielded(address.searchParams, where);
    const parts = mine && rest ? [`(${mine})`, rest] : [mine, rest].filter(Boolean);
    if (parts.length) address.searchParams.set("where", parts.join(" AND "));
    return address.pathname + address.search;
  }

  // What a field of the filters can say goes there; the rest stays text. A field takes no blanks around a name.
  const FIELD = /^(queue|state|user|account|application) = '((?:[^']|'')*)'(?: AND |$)/;
  function fielded(params, where) {
    let rest = where;
    for (let found; (found = FIELD.exec(rest)); rest = rest.slice(found[0].length)) {
      const value = found[2].replaceAll("''", "'");
      if (!value || value !== value.trim() || value.length > 256) break;
      params.set(found[1], value);
    }
    return rest;
  }

  function drop(element) {
    const found = charts.get(element);
    if (found) found.chart.dispose();
    charts.delete(element);
  }

  function redrawAll() {
    for (const element of [...charts.keys()]) element.isConnected ? load(element) : drop(element);
  }

  // --- brushing: ranges on parallel axes become a filter, and the engine counts its jobs
  let counting = 0;
  async function brushed(element, chart) {
    const line = element.parentElement.querySelector(".brushed");
    const option = chart.getOption();
    const where = option.parallel.length > 1 ? "" : rangesOf(chart, option.parallelAxis);
    line.hidden = !where;
    if (!where) return;
    const turn = ++counting;
    const address = jobsAddress(element, where);
    line.textContent = "Counting the brushed jobs …";
    const api = new URL("/api/v1" + address, location.href);
    api.searchParams.set("size", "1");
    const answer = await fetch(api, { headers: { Accept: "application/json" } });
    const body = await answer.json();
    if (turn !== counting) return;
    if (!answer.ok) { line.textContent = body.detail; return; }
    const link = document.createElement("a");
    link.href = address;
    link.textContent = `${body.num_rows.toLocaleString("en")} jobs lie in the brushed ranges`;
    line.replaceChildren(link);
  }

  function rangesOf(chart, axes) {
    const parts = [];
    axes.forEach((axis, index) => {
      const model = chart.getModel().getComponent("parallelAxis", index);
      const ranges = (model.activeIntervals || []).map((each) => rangeOf(axis, each)).filter(Boolean);
      if (ranges.length === 1) parts.push(ranges[0]);
      else if (ranges.length) parts.push(`(${ranges.join(" OR ")})`);
    });
    return parts.join(" AND ");
  }

  // A range that reaches an end of its axis is open there: what is less is drawn at the foot too.
  function rangeOf(axis, interval) {
    const [low, high] = [Math.min(...interval), Math.max(...interval)];
    if (axis.type === "category") return namesOf(axis, low, high);
    const whole = axis.factor === 1 && axis.column.startsWith("num_");
    const text = (value, round) => (whole ? round(value) : Number((value * axis.factor).toPrecision(6)));
    const above = axis.min !== undefined && low <= axis.min * 1.01 ? "" : `${axis.column} >= ${text(low, Math.ceil)}`;
    const below = axis.max !== undefined && high >= axis.max * 0.99 ? "" : `${axis.column} <= ${text(high, Math.floor)}`;
    return [above, below].filter(Boolean).join(" AND ");
  }

  function namesOf(axis, low, high) {
    const names = axis.data.slice(Math.max(0, Math.ceil(low)), Math.floor(high) + 1);
    const quoted = names.map((name) => `'${String(name.value ?? name).replaceAll("'", "''")}'`);
    return quoted.length ? `${axis.column} IN (${quoted.join(", ")})` : "";
  }

  // --- the figure as a file, made here
  function save(button) {
    const holder = button.closest("[data-analysis]");
    const element = holder.querySelector(".chart");
    const found = charts.get(element);
    if (!found) return;
    const name = `${element.dataset.id}.${button.dataset.save}`;
    if (button.dataset.save === "png") savePng(element, found, name);
    else saveSvg(element, found.drawing, name);
  }

  function savePng(element, { chart, drawing }, name) {
    const scale = 2;
    const page = pageOf(element, drawing, chart.getWidth(), chart.getHeight());
    const canvas = document.createElement("canvas");
    canvas.width = page.width * scale;
    canvas.height = page.height * scale;
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    context.fillStyle = drawing.option.backgroundColor;
    context.fillRect(0, 0, page.width, page.height);
    context.drawImage(chart.renderToCanvas({ pixelRatio: scale }), EDGE, page.top, chart.getWidth(), chart.getHeight());
    for (const { text, y, font, colour } of page.lines) {
      context.font = font;
      context.fillStyle = colour;
      context.fillText(text, EDGE, y);
    }
    canvas.toBlob((blob) => give(blob, name), "image/png");
  }

  function saveSvg(element, drawing, name) {
    const width = Math.max(640, element.clientWidth);
    const drawn = echarts.init(null, null, { renderer: "svg", ssr: true, width, height: drawing.height });
    drawn.setOption(drawable(drawing.option));
    const page = pageOf(element, drawing, width, drawing.height);
    const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
    const texts = page.lines.map(({ text, y, font, colour }) => {
      const [weight, size, family] = font.match(/^(\d+) (\d+)px (.*)$/).slice(1);
      return `<text x="${EDGE}" y="${y}" font-weight="${weight}" font-size="${size}" font-family="${escaped(family)}" fill="${colour}">${escaped(text)}</text>`;
    });
    const inner = drawn.renderToSVGString().replace("<svg ", `<svg x="${EDGE}" y="${page.top}" `);
    drawn.dispose();
    const whole = `<svg xmlns="http://www.w3.org/2000/svg" width="${page.width}" height="${page.height}" viewBox="0 0 ${page.width} ${page.height}">`
      + `<rect width="100%" height="100%" fill="${drawing.option.backgroundColor}"/>${texts.join("")}${inner}</svg>`;
    give(new Blob([whole], { type: "image/svg+xml" }), name);
  }

  // A figure that leaves its page takes along what it is of: title, cluster and filters above, the notes below.
  const EDGE = 16;
  function pageOf(element, drawing, width, height) {
    const { fontFamily, color } = drawing.option.textStyle;
    const font = (weight, size) => `${weight} ${size}px ${fontFamily}`;
    const lines = [];
    let y = EDGE;
    const write = (words, weight, size) => {
      for (const text of broken(words, width, font(weight, size))) {
        lines.push({ text, y: (y += Math.round(size * 1.4)), font: font(weight, size), colour: color });
      }
    };
    write(drawing.title, 600, 18);
    write(selectionOf(element), 400, 13);
    const top = y + EDGE;
    y = top + height;
    for (const note of notesOf(drawing)) write(note, 400, 12);
    return { width: width + 2 * EDGE, height: y + EDGE, top, lines };
  }

  function selectionOf(element) {
    const pairs = [...new URL(element.dataset.figure, location.href).searchParams];
    const clusters = pairs.filter(([name]) => name === "cluster").map(([, value]) => value).join(", ");
    const rest = pairs.filter(([name]) => name !== "cluster").map(([name, value]) => `${name.replace("param.", "")} ${value}`);
    return [clusters, ...rest].filter(Boolean).join(" · ");
  }

  const pen = document.createElement("canvas").getContext("2d");
  function broken(text, width, font) {
    pen.font = font;
    const lines = [""];
    for (const word of text.split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (lines.at(-1) && pen.measureText(longer).width > width) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    return lines;
  }

  function give(blob, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }

  // --- the page, at first and after each swap
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

  document.addEventListener("DOMContentLoaded", () => {
    prepare();
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
      prepare();
    });
  });
  // A changed field sends its form. Enter changes and submits at once: one of the two is enough.
  // A date changes with every digit of its year: until there are four it is still being typed.
  const isTyped = (field) => field.type !== "date" || (!field.validity.badInput && !/^0/.test(field.value));
  let sending = 0;
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (event.target.name === "theme") chooseTheme(event.target.value);
    else if (form && "auto" in form.dataset && isTyped(event.target)) sending = setTimeout(() => form.isConnected && form.requestSubmit(), 0);
  });
  document.addEventListener("submit", () => clearTimeout(sending), true);
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-save]");
    if (button) save(button);
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const field = document.getElementById("q") || document.getElementById("f-since");
      if (field) { event.preventDefault(); field.focus(); }
    }
  });
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

  // --- printing: a browser does not wait for what is fetched, so the page fetches before it asks to print
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
})();
