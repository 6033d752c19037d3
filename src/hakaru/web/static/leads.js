// Where a chart leads: the jobs behind a bar or a column, and those in brushed ranges.
"use strict";
{
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

  // Ranges on parallel axes become a filter, and the engine counts its jobs
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

  Object.assign(hakaru, { jobsAddress, leadFromColumns, brushed });
}
