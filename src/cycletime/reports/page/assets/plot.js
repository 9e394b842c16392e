// One pair of axes, drawn by uPlot: lines with bands, single seeds, and a readout that follows mouse and arrow keys.
(() => {
  const app = globalThis.cycletime;
  const DASHES = [[], [9, 5], [10, 4, 2, 4], [2, 4]];

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const inkOf = (colour) => (colour === "#000000" ? style("--ink") : `color-mix(in srgb, ${colour} ${style("--pure")}, white)`);
  app.inkOf = inkOf;
  const faint = (colour, share) => `color-mix(in srgb, ${inkOf(colour)} ${Math.round(100 * share)}%, transparent)`;

  /** A number for people: four digits, thousands with commas. */
  function shown(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1000) return Math.round(value).toLocaleString("en");
    return String(Number(value.toPrecision(size >= 100 ? 4 : 3)));
  }
  app.shown = shown;

  /** A number on an axis. */
  function short(value) {
    const size = Math.abs(value);
    if (size >= 1e6) return `${Number((value / 1e6).toPrecision(3))}M`;
    if (size >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
    return String(Number(value.toPrecision(6)));
  }

  /** By seed, where its curve goes; bins that are not told are undefined. */
  function seedLines(told, bins) {
    return told.deltas.map((deltas) => {
      const line = new Array(bins).fill(undefined);
      let whole = 0;
      deltas.forEach((delta, index) => { whole += delta; line[(index + 1) * told.every - 1] = whole * told.step; });
      return line;
    });
  }

  /** The numbers of a line for the state of the controls. */
  function numbersOf(line, figure, data, state) {
    if (line.values) return { middle: line.values, low: null, high: null, n: null };
    if (figure.kind === "curves") {
      const curve = data.curves[line.cells[0]];
      if (!curve) return null;
      const [middle, low, high] = curve[state.statistic];
      return { middle, low, high, n: data.cells[line.cells[0]].n };
    }
    const cells = line.cells.map((name) => (name === null ? null : data.cells[name]));
    const part = (index) => cells.map((cell) => (cell ? cell[state.statistic][index] : null));
    return { middle: part(0), low: part(1), high: part(2), n: cells.map((cell) => cell?.n ?? null) };
  }

  function readout(panel, columns, figure, xText) {
    const box = app.make("div", { class: "readout", hidden: true });
    const show = (chart) => {
      const { idx, left } = chart.cursor;
      if (idx === null || idx === undefined || left < 0) { box.hidden = true; return; }
      const rows = columns.filter((each) => !each.isHidden && each.middle[idx] !== null && each.middle[idx] !== undefined)
        .map((each) => ({ ...each, value: each.middle[idx] })).sort((a, b) => b.value - a.value);
      if (!rows.length) { box.hidden = true; return; }
      box.replaceChildren(app.make("strong", {}, xText(chart.data[0][idx], idx)), ...rows.map((each) => {
        const half = each.low && each.high && each.high[idx] !== null ? ` [${shown(each.low[idx])}, ${shown(each.high[idx])}]` : "";
        const n = Array.isArray(each.n) ? each.n[idx] : each.n;
        const swatch = app.make("i", {});
        swatch.style.background = inkOf(each.line.colour);
        return app.make("div", {}, swatch, `${each.line.name}: `, app.make("b", {}, shown(each.value)), `${half}${n ? `, n = ${n}` : ""}`);
      }));
      box.hidden = false;
      const right = left > chart.over.clientWidth / 2;
      box.style.left = right ? "auto" : `${chart.over.offsetLeft + left + 14}px`;
      box.style.right = right ? `${chart.root.clientWidth - chart.over.offsetLeft - left + 14}px` : "auto";
    };
    return { box, show };
  }

  /** Dots for single scores, each a little beside its place. */
  function drawScores(chart, lines, data, state) {
    const { ctx } = chart;
    ctx.save();
    for (const [index, line] of lines.entries()) {
      if (!line.cells || state.hidden.has(line.name)) continue;
      ctx.fillStyle = faint(line.colour, 0.35);
      line.cells.forEach((name, place) => {
        if (name === null) return;
        const x = chart.valToPos(chart.data[0][place], "x", true) + (index - (lines.length - 1) / 2) * 9 * devicePixelRatio;
        data.cells[name].scores.forEach((score, seed) => {
          ctx.beginPath();
          ctx.arc(x + (((seed * 7) % 5) - 2) * devicePixelRatio, chart.valToPos(score, "y", true), 1.7 * devicePixelRatio, 0, 7);
          ctx.fill();
        });
      });
    }
    ctx.restore();
  }

  function axes(figure, panel, xLabel, isPoints, x) {
    const look = { stroke: style("--quiet"), grid: { stroke: style("--grid"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
    const horizontal = { ...look, label: xLabel, labelSize: 26, size: 34, values: (_, splits) => splits.map(short), space: 70 };
    if (isPoints) {
      horizontal.splits = () => x;
      horizontal.filter = (_, splits) => splits;
      horizontal.values = (_, splits) => splits.map((value, index) => panel.names[index] ?? short(value));
      horizontal.size = panel.names.some((name) => name.includes("\n")) ? 50 : 34;
    }
    return [horizontal, { ...look, size: 58, values: (_, splits) => splits.map(short) }];
  }

  /** The range of the vertical axis: of all that is shown, with some air. */
  function range(columns, extra) {
    let low = Infinity, high = -Infinity;
    const take = (value) => { if (Number.isFinite(value)) { low = Math.min(low, value); high = Math.max(high, value); } };
    for (const each of columns) if (!each.isHidden) for (const part of [each.middle, each.low, each.high]) part?.forEach(take);
    extra.forEach(take);
    if (low > high) return [0, 1];
    const air = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
    return [low - air, high + air];
  }
  app.rangeOf = range;

  /** The columns of a panel: what each line shows. */
  app.columnsOf = (panel, figure, data, state) => panel.lines
    .map((line) => ({ line, ...numbersOf(line, figure, data, state), isHidden: state.hidden.has(line.name) }))
    .filter((each) => each.middle);

  app.plotHeight = (box) => Math.round(Math.max(230, Math.min(340, box.clientWidth * 0.72)));

  /** Draw a panel into a box. `seeds` has single curves, where they are shown; `limits` the vertical range. */
  app.plot = (box, panel, figure, data, state, seeds, limits) => {
    const isPoints = figure.kind === "points", columns = app.columnsOf(panel, figure, data, state);
    const bins = isPoints ? panel.places.length : columns[0]?.middle.length ?? 0;
    const end = isPoints ? 0 : data.curves[panel.lines[0].cells[0]]?.env_steps ?? 0;
    const scale = state.axis === "seconds" ? figure.stepS : 1;
    const x = isPoints ? panel.places : Array.from({ length: bins }, (_, index) => (end * scale * (index + 1)) / bins);
    const table = [x], series = [{}], bands = [];
    for (const each of columns) {
      const colour = inkOf(each.line.colour), show = !each.isHidden;
      if (seeds && !isPoints && each.line.cells && seeds[each.line.cells[0]]) {
        for (const line of seedLines(seeds[each.line.cells[0]], bins)) {
          table.push(line);
          series.push({ show, stroke: faint(each.line.colour, 0.22), width: 1, spanGaps: true, points: { show: false } });
        }
      }
      if (each.low && each.high) {
        table.push(each.high, each.low);
        series.push({ show, width: 0, points: { show: false } }, { show, width: 0, points: { show: false } });
        bands.push({ series: [series.length - 2, series.length - 1], fill: faint(each.line.colour, 0.18) });
      }
      table.push(each.middle);
      series.push({ show, stroke: colour, width: 2, dash: DASHES[each.line.dash], spanGaps: false,
        points: { show: isPoints && each.line.cells !== undefined, size: 7, fill: each.line.dash ? style("--paper") : colour, stroke: colour } });
    }
    const xLabel = isPoints ? figure.xLabel : state.axis === "seconds" ? "environment time (s)" : figure.xLabel;
    const xText = (value, index) => panel.names[index]?.replace("\n", " ") ?? `${xLabel}: ${isPoints ? short(value) : shown(value)}`;
    const { box: hover, show } = readout(panel, columns, figure, xText);
    const isLog = isPoints && figure.log && x.length > 1;
    const [first, last] = [x[0], x.at(-1)];
    const span = !isPoints ? [0, last] : isLog ? [first / 1.25, last * 1.25] : [first - 0.6, last + 0.6];
    const markLine = (chart) => {
      if (!state.mark || !isLog || state.mark < span[0] || state.mark > span[1]) return;
      const at = chart.valToPos(state.mark, "x", true), { top, height } = chart.bbox, { ctx } = chart;
      ctx.save(); ctx.strokeStyle = style("--accent"); ctx.lineWidth = 2 * devicePixelRatio; ctx.setLineDash([3, 3]);
      ctx.beginPath(); ctx.moveTo(at, top); ctx.lineTo(at, top + height); ctx.stroke(); ctx.restore();
    };
    const chart = new uPlot({
      width: box.clientWidth, height: app.plotHeight(box),
      legend: { show: false }, cursor: { y: false, points: { size: 8 }, drag: { setScale: false, x: false, y: false } },
      scales: { x: { time: false, distr: isLog ? 3 : 1, log: 2, range: () => span }, y: { range: () => limits } },
      axes: axes(figure, panel, xLabel, isPoints, x), series, bands,
      hooks: { setCursor: [show], draw: [(it) => { if (isPoints && seeds) drawScores(it, panel.lines, data, state); markLine(it); }] },
    }, table, box);
    chart.root.append(hover);
    return { chart, move: (by) => {
      const index = Math.min(bins - 1, Math.max(0, (chart.cursor.left < 0 ? (by > 0 ? -1 : bins) : chart.cursor.idx ?? 0) + by));
      chart.setCursor({ left: chart.valToPos(x[index], "x"), top: 10 });
    }, leave: () => chart.setCursor({ left: -10, top: -10 }) };
  };
})();
