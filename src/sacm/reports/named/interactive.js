"use strict";
(() => {
  const { findings, labels, lines } = JSON.parse(document.getElementById("data").textContent);
  const NONE = "–";
  const DASHES = ["", "5 3", "1.5 2.5", "8 3 2 3"];

  // Small helpers: an element, text that is safe in markup, numbers as the tables write them.

  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function safe(text) {
    const holder = document.createElement("span");
    holder.textContent = text;
    return holder.innerHTML.replaceAll('"', "&quot;");
  }

  function number(value, digits = 4) {
    if (value === null || value === undefined) return NONE;
    const size = Math.abs(value);
    const plain = size === 0 || (size >= 1e-4 && size < 1e6);
    const text = !plain
      ? value.toExponential(digits - 1)
      : size >= 10 ** digits ? value.toFixed(0) : value.toPrecision(digits);
    return text.replaceAll("-", "−");
  }

  function listing(headings, rows, words = 1) {
    const line = (cells, tag) =>
      make("tr", {}, ...cells.map((cell, i) => make(tag, i < words ? { class: "text" } : {}, cell)));
    const head = make("thead", {}, line(headings, "th"));
    const body = make("tbody", {}, ...rows.map((cells) => line(cells, "td")));
    return make("div", { class: "wide" }, make("table", {}, head, body));
  }

  function menu(name, values, all) {
    const choices = values.map(([value, text]) => make("option", { value }, text));
    const select = make("select", {}, ...(all ? [make("option", { value: "" }, "all")] : []), ...choices);
    return [make("label", {}, name, select), select];
  }

  // The maps: one at a time, arrows move from cell to cell.

  function maps() {
    const holder = document.getElementById("maps");
    if (!holder) return;
    const all = [...holder.querySelectorAll(".map")];
    const kinds = (name) => [...new Set(all.map((map) => map.dataset[name]))];
    const [metricLabel, metric] = menu("metric", kinds("metric").map((m) => [m, labels[m] ?? m]));
    const [strategyLabel, strategy] = menu("strategy", kinds("strategy").map((s) => [s, s]));
    const controls = make("div", { class: "controls" });
    if (metric.length > 1) controls.append(metricLabel);
    if (strategy.length > 1) controls.append(strategyLabel);
    if (controls.children.length) holder.before(controls);
    const show = () => {
      for (const map of all) {
        map.hidden = map.dataset.metric !== metric.value || map.dataset.strategy !== strategy.value;
      }
    };
    metric.onchange = strategy.onchange = show;
    all.forEach(roving);
    holder.addEventListener("click", (event) => {
      const cell = event.target.closest("button[data-row]");
      if (cell) open(Number(cell.dataset.row));
    });
  }

  function roving(map) {
    const cells = [...map.querySelectorAll("button[data-row]")];
    cells.forEach((cell, i) => { cell.tabIndex = i ? -1 : 0; });
    const at = (row, column) => map.querySelector("tbody").rows[row]?.cells[column]?.querySelector("button");
    map.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      const cell = event.target.closest("td");
      if (!step || !cell) return;
      event.preventDefault();
      const next = at(cell.parentElement.sectionRowIndex + step[0], cell.cellIndex + step[1]);
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    });
  }

  // The table of every row: sorted by a heading, filtered by words and menus.

  const results = document.querySelector("#results table");
  const entries = [...results.tBodies[0].rows].map((row, place) => ({
    row,
    place,
    texts: [...row.cells].map((cell) => cell.textContent),
    started: row.classList.contains("group"),
  }));

  function sortable() {
    results.classList.add("sortable");
    const heads = [...results.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.onclick = () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.setAttribute("aria-sort", "none"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        order(column, down ? -1 : 1);
      };
    });
    for (const entry of entries) {
      const first = entry.row.cells[0];
      first.replaceChildren(make("button", { type: "button" }, first.textContent || "details"));
      entry.row.onclick = () => open(lines[entry.place]);
    }
  }

  function order(column, sign) {
    const amount = (text) => parseFloat(text.replaceAll("−", "-").replace(/^[<(]/, ""));
    const sorted = [...entries].sort((a, b) => {
      const [one, two] = [a.texts[column], b.texts[column]];
      const [gone, lacks] = [one, two].map((text) => text === NONE || text === "");
      if (gone || lacks) return gone - lacks || a.place - b.place; // what is not there comes last
      const [x, y] = [amount(one), amount(two)];
      const found = Number.isNaN(x) || Number.isNaN(y) ? one.localeCompare(two, "en", { numeric: true }) : x - y;
      return sign * found || a.place - b.place;
    });
    results.tBodies[0].append(...sorted.map((entry) => entry.row));
    for (const entry of entries) entry.row.classList.remove("group"); // blocks are those of the first order
  }

  function filters() {
    const words = make("input", { type: "search", placeholder: "words, any order" });
    const count = make("output", { "aria-live": "polite" });
    const controls = make("div", { class: "controls" }, make("label", {}, "filter", words));
    const menus = [];
    [...results.tHead.rows[0].cells].forEach((head, column) => {
      const values = [...new Set(entries.map((entry) => entry.texts[column]))];
      if (!head.classList.contains("text") || values.length < 2) return;
      const [label, select] = menu(head.textContent, values.map((value) => [value, value]), true);
      menus.push([column, select]);
      controls.append(label);
    });
    const apply = () => {
      const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const { row, texts } of entries) {
        const text = texts.join(" ").toLowerCase();
        const fits = wanted.every((word) => text.includes(word));
        row.hidden = !fits || menus.some(([column, { value }]) => value && texts[column] !== value);
        shown += !row.hidden;
      }
      count.textContent = `${shown} of ${entries.length} rows`;
    };
    controls.addEventListener("input", apply);
    controls.append(count);
    document.getElementById("results").before(controls);
    apply();
  }

  // The panel: one row's numbers beside the paper's, and all runs behind them.

  const title = make("h2", { id: "panel-title" });
  const shut = make("button", { type: "button", class: "shut" }, "Close");
  const content = make("div");
  const panel = make("dialog", { "aria-labelledby": "panel-title" }, make("header", {}, title, shut), content);
  shut.onclick = () => panel.close();
  panel.onclick = (event) => { if (event.target === panel) panel.close(); };
  document.body.append(panel);

  function open(place) {
    const row = findings.rows[place];
    title.textContent = findings.row_keys.map((key) => row.keys[key] ?? NONE).join(", ") || findings.title;
    const groups = row.groups.map((group) => findings.groups[group]);
    const whole = groups.findIndex((group) => group.runs.every((run) => run.state === "done"));
    content.replaceChildren(beside(row), ...groups.map((group, i) => runs(group, i === Math.max(whole, 0))));
    panel.showModal();
    panel.scrollTop = 0;
  }

  function beside(row) {
    const same = (other) => findings.row_keys.every((key) => other.keys[key] === row.keys[key]);
    const chosen = entries.filter((entry) => same(findings.rows[lines[entry.place]]));
    const from = findings.row_keys.length;
    const heads = [...results.tHead.rows[0].cells].slice(from);
    const words = heads.filter((head) => head.classList.contains("text")).length;
    return listing(heads.map((head) => head.textContent), chosen.map((entry) => entry.texts.slice(from)), words);
  }

  function runs(group, isOpen) {
    const varied = Object.entries(group.keys).filter(([key]) => !findings.row_keys.includes(key));
    const name = [...varied.map(([key, value]) => `${key} ${value}`), `size ${group.size}`].join(", ");
    const states = { done: "done", failed: "failed", missing: "not run" };
    const open = group.runs.filter((run) => run.state !== "done").map((run) => `${run.strategy} ${states[run.state]}`);
    const whole = make("details", {}, make("summary", {}, open.length ? `${name} (${open.join(", ")})` : name));
    const names = [...new Set([...findings.metrics, ...group.runs.flatMap((run) => Object.keys(run.values ?? {}))])];
    const table = listing(
      ["strategy", "state", ...names.map((name) => labels[name] ?? name), "epochs", "seconds", "run", "made with"],
      group.runs.map((run) => [
        run.chosen ? `${run.strategy}: ${run.chosen}` : run.strategy,
        states[run.state],
        ...names.map((name) => number(run.values?.[name])),
        String(run.epochs ?? NONE),
        number(run.seconds, 3),
        run.run ?? NONE,
        run.made_with ?? NONE,
      ]),
    );
    const reasons = group.runs
      .filter((run) => run.reason)
      .map((run) => make("p", { class: "reason" }, `${run.strategy}: ${run.reason}`));
    // Curves are drawn when they are first looked at.
    whole.ontoggle = () => { if (whole.open && !whole.querySelector(".charts")) whole.append(...curves(group)); };
    whole.append(table, ...reasons);
    whole.open = isOpen;
    return whole;
  }

  // Curves by epoch as SVG markup, which the page's parser gives its namespace.

  function curves(group) {
    const trained = group.runs
      .map((run) => ({ ...run, ...style(run.strategy) }))
      .filter((run) => run.history.epoch?.length);
    const charts = make("div", { class: "charts" });
    if (!trained.length) {
      charts.append(make("p", { class: "note" }, "There are no training curves of these runs."));
      return [charts];
    }
    const kinds = { train_loss: "training loss", validation: "validation", rate_mean: "dropout rate, mean ± deviation" };
    charts.innerHTML = Object.entries(kinds).map(([column, text]) => chart(trained, column, text)).join("");
    const key = make("div", { class: "key" });
    key.innerHTML = trained.map(({ strategy, look }) =>
      `<span><svg viewBox="0 0 32 10" aria-hidden="true"><path d="M0 5H32" ${look}/></svg>${safe(strategy)}</span>`).join("");
    const note = "The training loss is measured with each strategy's own dropout at work: levels are not comparable.";
    return [key, charts, make("p", { class: "note" }, note)];
  }

  function style(strategy) {
    const all = [...new Set([...findings.strategies, ...findings.groups.flatMap((g) => g.runs.map((r) => r.strategy))])];
    const place = all.indexOf(strategy);
    const colour = `var(--series-${place % 6})`;
    return { colour, look: `fill="none" stroke="${colour}" stroke-width="1.8" stroke-dasharray="${DASHES[Math.floor(place / 6) % 4]}"` };
  }

  function chart(trained, column, text) {
    const [left, right, top, bottom] = [46, 312, 24, 150];
    const drawn = trained.filter((run) => run.history[column]?.some((value) => value !== null));
    if (!drawn.length) return "";
    const bands = column === "rate_mean";
    const spread = (run, i) => (bands ? run.history.rate_std[i] ?? 0 : 0);
    const points = (run) => run.history.epoch
      .map((epoch, i) => [epoch, run.history[column][i], spread(run, i)])
      .filter(([, value]) => value !== null);
    const all = drawn.flatMap(points);
    let [low, high] = [Math.min(...all.map(([, v, s]) => v - s)), Math.max(...all.map(([, v, s]) => v + s))];
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) * 0.05, high + (Math.abs(high) || 1) * 0.05];
    const [first, last] = [Math.min(...all.map(([e]) => e)), Math.max(...all.map(([e]) => e))];
    const x = (epoch) => first === last ? (left + right) / 2 : left + ((right - left) * (epoch - first)) / (last - first);
    const y = (value) => bottom - ((bottom - top) * (value - low)) / (high - low);
    const place = (epoch, value) => `${x(epoch).toFixed(1)} ${y(value).toFixed(1)}`;
    const marks = ticks(low, high, 4).map((value) =>
      `<path d="M${left} ${y(value).toFixed(1)}H${right}" stroke="var(--grid)"/>` +
      `<text x="${left - 5}" y="${(y(value) + 4).toFixed(1)}" text-anchor="end">${short(value)}</text>`);
    const epochs = ticks(first, last, 6).filter(Number.isInteger).map((epoch) =>
      `<text x="${x(epoch).toFixed(1)}" y="${bottom + 15}" text-anchor="middle">${epoch}</text>`);
    const traces = drawn.map((run) => {
      const found = points(run);
      const line = found.map(([epoch, value]) => place(epoch, value)).join("L");
      const dot = found.length === 1
        ? `<circle cx="${x(found[0][0])}" cy="${y(found[0][1])}" r="3" ${run.look}/>` : "";
      const upper = found.map(([e, v, s]) => place(e, v + s)).join("L");
      const lower = [...found].reverse().map(([e, v, s]) => place(e, v - s)).join("L");
      const band = bands
        ? `<path d="M${upper}L${lower}Z" fill="${run.colour}" opacity=".15"/>` : "";
      return `${band}<path d="M${line}" ${run.look}/>${dot}`;
    });
    const said = drawn.map((run) => {
      const found = points(run);
      return `${run.strategy} ${number(found[0][1], 3)} to ${number(found.at(-1)[1], 3)}`;
    });
    return `<svg viewBox="0 0 320 184" role="img" aria-label="${safe(`${text} by epoch: ${said.join(", ")}`)}">` +
      `<text class="title" x="${left}" y="14">${text}</text>${marks.join("")}${epochs.join("")}` +
      `${traces.join("")}<text x="${(left + right) / 2}" y="181" text-anchor="middle">epoch</text></svg>`;
  }

  function ticks(low, high, most) {
    if (low === high) return [low];
    const rough = (high - low) / most;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
    const found = [];
    for (let i = Math.ceil(low / step); i * step <= high + step * 1e-9; i += 1) found.push(Number((i * step).toPrecision(10)));
    return found;
  }

  function short(value) {
    const size = Math.abs(value);
    const text = size && (size < 1e-3 || size >= 1e5) ? value.toExponential(0) : String(Number(value.toPrecision(4)));
    return text.replaceAll("-", "−");
  }

  maps();
  filters();
  sortable();
})();
