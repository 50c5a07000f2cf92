"use strict";
// What the page does besides showing: colours for light and dark, zoom by button, key and link, and the list of events.
// Plots, hover, legends and linked axes are Bokeh's own.
(() => {
  const facts = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;

  // Colours by tag. One entry: [light fill, dark fill, light line, dark line, fill alpha].
  const NONE = "rgba(0,0,0,0)";
  const paint = {
    held: ["#4a90c2", "#3b7fb0", NONE, NONE, 1], partly: ["#a9cde5", "#26506e", NONE, NONE, 1],
    missing: ["#eceff2", "#1c2128", "#c4ccd4", "#444c56", 1], away: ["#ffffff", "#0d1117", "#9aa4ae", "#6e7681", 0],
    replayed_partly: ["#cfe5db", "#234a3d", NONE, NONE, 1], replayed: ["#7fb6a0", "#2f7d62", NONE, NONE, 1], "line:joined": ["", "", "#59636e", "#aab4be", 1],
    "mark:joined": ["#1f2328", "#e6edf3", "#ffffff", "#0d1117", 1],
    "mark:missing": ["#d1242f", "#ff7b72", "#d1242f", "#ff7b72", 1],
    "mark:extra": ["#e3a008", "#f2cc60", "#7a5200", "#0d1117", 1],
    used: ["#a7b1bc", "#5d6873", NONE, NONE, 1],
    must: ["#2da44e", "#2ea043", NONE, NONE, 1], must_not: ["#57606a", "#8b949e", NONE, NONE, 1],
    may: ["#f2cf66", "#9e7a1c", NONE, NONE, .75], late: ["#e3a008", "#d29922", NONE, NONE, .95],
    over: ["#d1242f", "#f85149", "#82071e", "#ffc1ba", .92],
    ns0: ["#0072b2", "#3b8ec2", NONE, NONE, .9], ns1: ["#e69f00", "#c98f1a", NONE, NONE, .9],
    ns2: ["#009e73", "#1fa37d", NONE, NONE, .9], ns3: ["#cc79a7", "#c27ba3", NONE, NONE, .9],
    ns4: ["#56b4e9", "#56b4e9", NONE, NONE, .9], ns5: ["#b8a800", "#c9bc2e", NONE, NONE, .9],
    ns6: ["#8a63d2", "#9d7be0", NONE, NONE, .9], ns7: ["#7a7a7a", "#a0a0a0", NONE, NONE, .9],
    ...Object.fromEntries(["#0072b2 #3b8ec2", "#e69f00 #c98f1a", "#009e73 #1fa37d", "#cc79a7 #c27ba3", "#56b4e9 #56b4e9",
      "#b8a800 #c9bc2e", "#8a63d2 #9d7be0", "#7a7a7a #a0a0a0"].map((pair, at) => [`owner${at}`, [...pair.split(" "), NONE, NONE, .9]])),
    phase0: ["#e4e9ee", "#21262d", NONE, NONE, 1], phase1: ["#d3dae1", "#2d333b", NONE, NONE, 1],
    unlogged: ["#ffffff", "#0d1117", "#9aa4ae", "#6e7681", 0], likely: ["#f3b4a5", "#7a3226", "#c2573f", "#d9735c", .35],
    fault: ["#f3b4a5", "#7a3226", "#c2573f", "#d9735c", .8], band: ["#e5684a", "#ff8f73", "#c2573f", "#d9735c", .09],
    highlight: ["#bf8700", "#f2cc60", "#9a6700", "#f2cc60", .1],
    "send:ok": ["#8ec3e6", "#2f6690", NONE, NONE, 1], "send:unknown": ["#e3a008", "#d29922", NONE, NONE, 1],
    "send:failed": ["#d1242f", "#f85149", NONE, NONE, 1],
    "mark:send": ["#1f5f8b", "#79b8e8", NONE, NONE, .55], "mark:failed": ["#bc4c00", "#ffa657", "#bc4c00", "#ffa657", 1],
    "mark:over": ["#d1242f", "#f85149", "#ffffff", "#0d1117", 1],
    "mark:example": ["#bf3989", "#f778ba", "#ffffff", "#0d1117", 1],
    "line:lateness": ["", "", "#8a4baf", "#d2a8ff", 1],
    "line:lag": ["", "", "#b35900", "#e69f4d", 1],
    "line:crosshair": ["", "", "#59636e", "#9198a1", 1],
  };
  let doc = null, time = null, plots = [];
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;

  const entryOf = (model) => (model.tags || []).map((tag) => paint[tag]).find(Boolean);

  function colour(model) { // a glyph or an annotation
    const entry = entryOf(model);
    if (!entry) return;
    const [fill, line] = dark ? [entry[1], entry[3]] : [entry[0], entry[2]];
    if ("fill_color" in model.properties && fill) { model.fill_color = fill; model.fill_alpha = entry[4]; }
    for (const name of ["line_color", "hatch_color"]) if (name in model.properties) model[name] = line;
  }

  function applyTheme() {
    root.classList.toggle("dark", dark);
    byId("theme").textContent = dark ? "light" : "dark";
    byId("theme").setAttribute("aria-pressed", String(dark));
    if (!doc) return;
    const style = getComputedStyle(root);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => style.getPropertyValue(name).trim());
    for (const model of doc._all_models.values()) {
      const p = model.properties || {};
      if ("axis_label_text_color" in p) {
        Object.assign(model, {axis_label_text_color: soft, major_label_text_color: ink, axis_line_color: line,
                              major_tick_line_color: line, minor_tick_line_color: null});
      } else if ("grid_line_color" in p) {
        model.grid_line_color = line;
        model.grid_line_alpha = .6;
      } else if ("label_text_color" in p && "click_policy" in p) {
        Object.assign(model, {label_text_color: ink, inactive_fill_color: dark ? "#0d1117" : "#ffffff"});
      } else if ((model.tags || []).some((tag) => tag.startsWith("text:"))) {
        model.text_color = model.tags.includes("text:fault") ? (dark ? "#ffa28b" : "#a13d26") : ink;
      } else {
        colour(model);
      }
    }
  }

  // Time axis
  function zoomTo(from, to) {
    const whole = facts.end - facts.start;
    const least = Math.max(to - from, .004);
    const middle = (from + to) / 2;
    const width = Math.min(least, whole * 1.02);
    let start = Math.max(middle - width / 2, facts.start - whole * .01);
    const end = Math.min(start + width, facts.end + whole * .01);
    start = Math.max(end - width, facts.start - whole * .01);
    time.setv({start, end});
  }
  const zoomBy = (factor) => { const m = (time.start + time.end) / 2, h = (time.end - time.start) / 2 * factor; zoomTo(m - h, m + h); };
  const move = (share) => { const w = (time.end - time.start) * share; zoomTo(time.start + w, time.end + w); };
  const whole = () => { zoomTo(facts.start - 1e9, facts.end + 1e9); unmark(); };

  // Highlight: where a link leads
  const free = new Map(); // the boxes' own edges, which span the whole height
  const boxes = () => [...free.keys()];
  function unmark() {
    for (const box of boxes()) box.visible = false;
    for (const row of document.querySelectorAll("tr.current")) row.classList.remove("current");
  }
  function follow() {
    const link = new URLSearchParams(location.hash.slice(1));
    if (!link.get("at") || !doc) return;
    const [from, to] = link.get("at").split(",").map(Number);
    if (!Number.isFinite(from) || !Number.isFinite(to)) return;
    const section = link.get("in"), lane = link.get("lane");
    const room = Math.max((to - from) * .35, (facts.end - facts.start) * .02, .2);
    zoomTo(from - room, to + room);
    unmark();
    const least = Math.max((to - from), (time.end - time.start) * .004);
    for (const box of boxes()) {
      const name = box.name.slice(5);
      const y = lane && facts.rows[name] ? facts.rows[name][lane] : undefined;
      const only = lane && name === section && y !== undefined;
      box.setv({left: from, right: Math.max(to, from + least), top: only ? y + .48 : free.get(box).top, bottom: only ? y - .48 : free.get(box).bottom, visible: true});
    }
    for (const anchor of document.querySelectorAll("tr a")) {
      if (anchor.getAttribute("href") !== location.hash) continue;
      anchor.closest("tr").classList.add("current");
      for (const group of document.querySelectorAll("details.group")) if (group.contains(anchor)) group.open = true;
      break;
    }
    const target = byId(section) || byId("routes") || byId("faults");
    if (target) target.scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth", block: "start"});
  }

  // Events in view
  const wall = (at) => new Date(facts.wall + facts.zone_ms + at * 1000 / facts.scale).toISOString().slice(11, 19);
  // Half the width around `at` that has some events, the twentieth of what is in view at least.
  function around(at) {
    const apart = facts.events.map((e) => Math.abs(e[0] - at)).sort((a, b) => a - b);
    const few = apart[Math.min(NEAREST, apart.length) - 1] || 0;
    return Math.max((time.end - time.start) * .05, few * 1.05);
  }
  const SHOWN = 300, NEAREST = 5;
  let pending = 0;
  function list() {
    pending = 0;
    const from = time ? time.start : facts.start, to = time ? time.end : facts.end;
    const first = Math.max(from, facts.start), last = Math.min(to, facts.end);
    byId("seen").textContent = `${(Math.abs(first) < .05 ? 0 : first).toFixed(1)} s … ${last.toFixed(1)} s` + (facts.wall ? `, ${wall(first)} … ${wall(last)}${facts.zone_ms === null ? " UTC" : ""}` : "");
    const wanted = byId("filter").value.trim().toLowerCase();
    const rows = facts.events.filter((e) => e[0] >= from && e[0] <= to && (!wanted || `${e[1]} ${e[3]}`.toLowerCase().includes(wanted)));
    const body = byId("list");
    body.replaceChildren(...rows.slice(0, SHOWN).map(([at, node, tone, text]) => {
      const row = document.createElement("tr");
      for (const [cell, kind] of [[at.toFixed(3), "n"], [node, ""], [text, tone]]) {
        const td = document.createElement("td");
        td.textContent = cell;
        if (kind) td.className = kind;
        row.append(td);
      }
      return row;
    }));
    byId("listed").textContent = rows.length > SHOWN ? `the first ${SHOWN} of ${rows.length} in view; zoom in for the rest` : `${rows.length} in view`;
  }
  const listSoon = () => { clearTimeout(pending); pending = setTimeout(() => { list(); fitTexts(); }, 120); };

  // One tooltip for all that lies under the pointer, the gravest first; Bokeh's own lie over each other.
  const GRAVEST = ["mark:over", "over", "late", "mark:example", "mark:failed"], TOLD = 3;
  const under = new Map(); // renderer → [how grave, text]
  const tip = Object.assign(document.createElement("div"), {className: "tip", hidden: true});
  tip.setAttribute("role", "tooltip");
  document.body.append(tip);
  let pointer = [0, 0], telling = 0;
  addEventListener("mousemove", (event) => {
    pointer = [event.clientX, event.clientY];
    if (!event.target.closest || !event.target.closest("[data-root-id]")) under.clear();
    if (!tip.hidden) tellSoon();
  }, true);
  addEventListener("scroll", () => { tip.hidden = true; }, {passive: true});
  function filled(template, data, at) { // "@y{0.0} ms" with the values of one row
    return template.replace(/@(\w+)(?:\{([^}]*)\})?/g, (_, name, format) => {
      const value = data[name] ? data[name][at] : "";
      return format && typeof value === "number" ? value.toFixed((format.split(".")[1] || "").length) : String(value);
    });
  }
  window.nemesrvHover = ({renderer, index}, lines) => {
    const tag = (renderer.glyph.tags || [])[0] || "", data = renderer.data_source.data;
    const grave = GRAVEST.includes(tag) ? GRAVEST.indexOf(tag) : GRAVEST.length + !tag.startsWith("mark:");
    const of = index.indices.length ? index.indices : (index.line_indices || []);
    const said = [...of].slice(0, 20).map((at) => lines.length ? lines.map(([name, value]) => `${name} ${filled(value, data, at)}`).join("\n") : String(data.text[at]));
    if (said.length && renderer.visible) under.set(renderer, said.map((text) => [grave, text]));
    else under.delete(renderer);
    tellSoon();
  };
  const tellSoon = () => { telling = telling || requestAnimationFrame(tell); };
  function tell() {
    telling = 0;
    const shown = [];
    for (const [, text] of [...under.values()].flat().sort((a, b) => a[0] - b[0])) {
      if (!shown.some((other) => other.includes(text))) shown.push(text); // a mark says what its bar says
    }
    tip.hidden = !shown.length;
    if (tip.hidden) return;
    const more = shown.length > TOLD ? [`and ${shown.length - TOLD} more`] : [];
    tip.replaceChildren(...[...shown.slice(0, TOLD), ...more].map((text) => Object.assign(document.createElement("div"), {textContent: text})));
    const box = tip.getBoundingClientRect(), [x, y] = pointer;
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
  }

  // Texts in plots: of those in one row that would lie over each other the first stays, none is longer than what it names,
  // and a text that its bar is too short for stands behind the bar.
  const texts = new Map(), SHORTEST = 4; // renderer → all it has; fewer letters of a text say nothing
  const pen = document.createElement("canvas").getContext("2d");
  function shortened(text, width) {
    if (pen.measureText(text).width <= width) return text;
    for (let length = text.length - 1; length >= SHORTEST; length--) {
      const cut = `${text.slice(0, length)}…`;
      if (pen.measureText(cut).width <= width) return cut;
    }
    return "";
  }
  function fitTexts() {
    for (const plot of plots) for (const renderer of plot.renderers) {
      if (!renderer.glyph || renderer.glyph.type !== "Text" || !plot.inner_width) continue;
      const {data_source: source, glyph} = renderer;
      if (!texts.has(renderer)) texts.set(renderer, Object.fromEntries(Object.entries(source.data).map(([name, of]) => [name, [...of]])));
      const all = texts.get(renderer), px = plot.inner_width / (time.end - time.start), free = new Map();
      pen.font = `${glyph.text_font_size.value || "12px"} sans-serif`;
      const shown = [];
      for (const at of all.x.map((_, at) => at).sort((a, b) => all.x[a] - all.x[b])) {
        const long = pen.measureText(all.text[at]).width + 10;
        const behind = all.bar && (all.bar[at] - all.x[at]) * px < long && (all.end[at] - all.bar[at]) * px > long;
        const start = behind ? all.bar[at] : all.x[at], from = start * px + 10;
        const text = shortened(all.text[at], (all.end ? all.end[at] * px : Infinity) - from);
        if (!text || from < (free.has(all.y[at]) ? free.get(all.y[at]) : -Infinity)) continue;
        free.set(all.y[at], from + pen.measureText(text).width);
        shown.push([at, text, start]);
      }
      if (shown.length !== source.data.x.length || shown.some(([, text, start], place) => source.data.text[place] !== text || source.data.x[place] !== start)) {
        const kept = Object.fromEntries(Object.entries(all).map(([name, of]) => [name, shown.map(([at]) => of[at])]));
        source.data = {...kept, text: shown.map(([, text]) => text), x: shown.map(([, , start]) => start)};
      }
    }
  }

  // Where a plot has little room: legends in columns that fit it; on a phone smaller names, and more width for the plot.
  function narrow() {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = "11px sans-serif";
    for (const view of Bokeh.index.roots || Bokeh.index) {
      const plot = view.model, width = view.el.clientWidth, phone = width < 500;
      if (!plots.includes(plot)) continue;
      let rows = 0;
      for (const legend of plot.above) {
        if (!legend.items) continue;
        const labels = legend.items.map((item) => String(item.label.value || item.label));
        const lines = labels.reduce((sum, label) => sum + pen.measureText(label).width + 36, 0) / (width - 200);
        if (width > 900 && lines <= 1) continue;
        const long = labels.some((label) => label.length > 12);
        const fitting = width > 900 ? Math.ceil(labels.length / Math.ceil(lines)) : phone ? (long ? 1 : 2) : long ? 3 : 4;
        const columns = Math.min(fitting, labels.length);
        rows += Math.ceil(legend.items.length / columns) - 1;
        legend.ncols = columns;
        if (phone) legend.label_text_font_size = "9px";
      }
      if (width > 900 && !rows) continue;
      if (phone) for (const axis of plot.left) axis.major_label_text_font_size = "9px";
      plot.setv({height: plot.height + rows * 22, ...(phone ? {min_border_left: 128, min_border_right: 8} : {})});
    }
  }

  function ready() {
    doc = Bokeh.documents[0];
    time = doc.get_model_by_name("time");
    plots = [...doc._all_models.values()].filter((m) => typeof m.name === "string" && m.name.startsWith("plot-"));
    for (const plot of plots) {
      const box = doc.get_model_by_name("mark-" + plot.name.slice(5));
      free.set(box, {top: box.top, bottom: box.bottom});
    }
    for (const range of ["start", "end"]) time.properties[range].change.connect(listSoon);
    for (const plot of plots) plot.on_event("tap", (event) => {
      const near = around(event.x);
      byId("filter").value = "";
      zoomTo(event.x - near, event.x + near);
      list();
      byId("events").scrollIntoView({block: "nearest"});
    });
    byId("whole").onclick = () => { history.replaceState(null, "", location.pathname + location.search); whole(); };
    byId("in").onclick = () => zoomBy(.5);
    byId("out").onclick = () => zoomBy(2);
    byId("earlier").onclick = () => move(-.3);
    byId("later").onclick = () => move(.3);
    byId("drag").onclick = () => {
      const pan = byId("drag").getAttribute("aria-pressed") !== "true";
      byId("drag").setAttribute("aria-pressed", String(pan));
      byId("drag").textContent = pan ? "drag: move" : "drag: zoom";
      for (const plot of plots) for (const tool of plot.toolbar.tools) if (tool.name === (pan ? "pan" : "zoom")) tool.active = true;
    };
    for (const button of document.querySelectorAll("#bar button[data-from]")) {
      button.onclick = () => { unmark(); zoomTo(Number(button.dataset.from), Number(button.dataset.to)); };
    }
    addEventListener("keydown", (event) => {
      if (event.target.closest("input, .tall") || event.ctrlKey || event.metaKey || event.altKey) return;
      const act = {"+": () => zoomBy(.5), "-": () => zoomBy(2), "0": whole}[event.key]
        || (event.target.closest("#bar") && {ArrowLeft: () => move(-.3), ArrowRight: () => move(.3)}[event.key]);
      if (act) { act(); event.preventDefault(); }
    });
    addEventListener("hashchange", follow);
    // A link that is followed twice leads there twice.
    for (const anchor of document.querySelectorAll("a[href^='#at=']")) anchor.addEventListener("click", () => { if (anchor.getAttribute("href") === location.hash) follow(); });
    narrow();
    applyTheme();
    follow();
    for (const plot of plots) plot.properties.inner_width.change.connect(listSoon);
    fitTexts();
    list();
    root.dataset.ready = "yes";
  }

  byId("filter").oninput = listSoon;
  byId("theme").onclick = () => { dark = !dark; applyTheme(); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => { dark = event.matches; applyTheme(); });
  let before = dark;
  addEventListener("beforeprint", () => {
    before = dark; dark = false; applyTheme();
    for (const group of document.querySelectorAll("details.group")) group.open = true;
  });
  addEventListener("afterprint", () => { dark = before; applyTheme(); });
  applyTheme();
  if (typeof Bokeh === "undefined") { list(); return; }
  const wait = () => (Bokeh.documents.length && Bokeh.documents[0].is_idle ? ready() : setTimeout(wait, 10));
  wait();
})();
