// A figure: its controls, its legend, its panels, and its numbers as a table.
(() => {
  const app = globalThis.cycletime;
  const { make } = app;
  let count = 0;

  /** A choice of one of several, as buttons that stand together. */
  function choice(title, options, chosen, act) {
    const name = `choice-${(count += 1)}`;
    const group = make("fieldset", { class: "choice" }, make("legend", {}, title));
    for (const [value, text] of Object.entries(options)) {
      const input = make("input", { type: "radio", name, value, id: `${name}-${value}`, checked: value === chosen });
      input.addEventListener("change", () => act(value));
      group.append(input, make("label", { for: `${name}-${value}` }, text));
    }
    return group;
  }

  class Chart {
    constructor(element, figure, data, packOf) {
      Object.assign(this, { element, figure, data, packOf, seeds: null, plots: [] });
      this.state = { statistic: "mean", axis: "steps", hidden: new Set(), mark: null };
      this.body = element.querySelector(".canvas");
      this.panels = make("div", { class: `panels n${Math.min(3, figure.panels.length)}` });
      this.message = make("p", { class: "sr", role: "status" });
      this.body.replaceChildren(this.controls(), this.legend(), make("p", { class: "measure" }, figure.yLabel), this.panels, this.message);
      this.body.removeAttribute("aria-busy");
      this.boxes = figure.panels.map((panel) => this.panelBox(panel));
      this.panels.append(...this.boxes.map(({ outer }) => outer));
      this.element.insertBefore(this.numbers(), this.element.querySelector("details"));
      this.reserve();
      let width = this.panels.clientWidth;
      new ResizeObserver(() => {
        if (this.panels.clientWidth !== width) { width = this.panels.clientWidth; this.reserve(); this.redraw(); }
      }).observe(this.panels);
    }

    /** Give each panel the height that it has once it is drawn. */
    reserve() {
      for (const { box } of this.boxes) box.style.height = `${app.plotHeight(box)}px`;
    }

    /** Draw again what was drawn. */
    redraw() {
      if (this.element.dataset.drawn) this.draw();
    }

    controls() {
      const { figure } = this, bar = make("div", { class: "controls" });
      bar.append(choice("shown", { mean: "mean", iqm: "IQM" }, "mean", (value) => { this.state.statistic = value; this.draw(); }));
      if (figure.kind === "curves" && figure.stepS) {
        bar.append(choice("against", { steps: "steps", seconds: "seconds" }, "steps", (value) => { this.state.axis = value; this.draw(); }));
      }
      const box = make("input", { type: "checkbox" });
      box.addEventListener("change", async () => {
        this.seeds = box.checked ? (figure.kind === "points" ? {} : await this.packOf(figure.pack)) : null;
        this.draw();
      });
      bar.append(make("label", { class: "seeds" }, box, " single seeds"));
      return bar;
    }

    legend() {
      const lines = new Map(this.figure.panels.flatMap((panel) => panel.lines).map((line) => [line.name, line]));
      this.swatches = [];
      const list = make("div", { class: "legend", role: "group", "aria-label": "Curves: press to hide or show" });
      for (const [name, line] of lines) {
        const swatch = make("i", { class: `dash${line.dash}` });
        this.swatches.push([swatch, line.colour]);
        const button = make("button", { type: "button", "aria-pressed": "true" }, swatch, name);
        button.addEventListener("click", () => {
          const { hidden } = this.state;
          if (!hidden.delete(name)) hidden.add(name);
          button.setAttribute("aria-pressed", String(!hidden.has(name)));
          this.draw();
        });
        list.append(button);
      }
      return list;
    }

    panelBox(panel) {
      const label = `${this.figure.title}${panel.title ? `, ${panel.title}` : ""}: ${this.figure.yLabel}. Arrow keys read values.`;
      const box = make("div", { class: "plot", tabindex: 0, role: "img", "aria-label": label });
      const outer = make("div", { class: "panel" }, ...(panel.title ? [make("h4", {}, panel.title)] : []), box);
      const found = { outer, box, panel, plot: null };
      box.addEventListener("keydown", (event) => {
        const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!by || !found.plot) return;
        event.preventDefault();
        found.plot.move(by);
        this.message.textContent = box.querySelector(".readout")?.textContent ?? "";
      });
      box.addEventListener("blur", () => found.plot?.leave());
      return found;
    }

    /** Panels share the vertical axis where they show the same kind of number. */
    limits(panel) {
      const every = this.figure.sameScale === false ? [panel] : this.figure.panels;
      const columns = every.flatMap((each) => app.columnsOf(each, this.figure, this.data, this.state));
      const dots = this.seeds && this.figure.kind === "points"
        ? columns.filter((each) => !each.isHidden && each.line.cells).flatMap((each) => each.line.cells.flatMap((name) => (name ? this.data.cells[name].scores : [])))
        : [];
      const lines = this.seeds && this.figure.kind === "curves"
        ? columns.filter((each) => !each.isHidden && this.seeds[each.line.cells[0]]).flatMap((each) => seedEnds(this.seeds[each.line.cells[0]]))
        : [];
      return app.rangeOf(columns, [...dots, ...lines]);
    }

    draw() {
      for (const [swatch, colour] of this.swatches) swatch.style.setProperty("--stroke", app.inkOf(colour));
      for (const each of this.boxes) {
        each.plot?.chart.destroy();
        each.box.replaceChildren();
        each.plot = app.plot(each.box, each.panel, this.figure, this.data, this.state, this.seeds, this.limits(each.panel));
      }
      this.element.dataset.drawn = String(Number(this.element.dataset.drawn ?? 0) + 1);
      this.element.querySelector(".numbers[open]")?.dispatchEvent(new Event("toggle"));
    }

    /** What is drawn, as a table; of curves their last tenth. */
    numbers() {
      const place = make("div");
      const part = make("details", { class: "numbers" }, make("summary", {}, "Numbers"), place);
      part.addEventListener("toggle", () => { if (part.open) place.replaceChildren(...this.tables()); });
      return part;
    }

    tables() {
      const { figure, data, state } = this, isPoints = figure.kind === "points";
      return figure.panels.map((panel) => {
        const columns = app.columnsOf(panel, figure, data, state);
        const heads = isPoints ? panel.places.map((value, index) => panel.names[index] ?? String(Number(value.toPrecision(6)))) : ["last tenth of learning"];
        const last = (values) => { const tenth = values.slice(-Math.max(1, Math.round(values.length / 10))); return tenth.reduce((sum, each) => sum + each, 0) / tenth.length; };
        const cell = (each, index) => {
          const value = isPoints ? each.middle[index] : last(each.middle);
          const ends = isPoints && each.low ? ` [${app.shown(each.low[index])}, ${app.shown(each.high[index])}]` : "";
          return make("td", {}, value === null ? "–" : app.shown(value) + ends);
        };
        const rows = columns.map((each) => make("tr", {}, make("th", { scope: "row" }, each.line.name), ...heads.map((_, index) => cell(each, index))));
        return make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": `Numbers: ${panel.title || figure.title}` },
          make("table", {}, make("caption", {}, `${panel.title || figure.title}; ${state.statistic === "mean" ? "means [± one standard error]" : "interquartile means [95 % bootstrap]"}`),
            make("thead", {}, make("tr", {}, make("th", { scope: "col" }, isPoints ? figure.xLabel : "curve"), ...heads.map((head) => make("th", { scope: "col" }, head)))),
            make("tbody", {}, ...rows)));
      });
    }
  }

  function seedEnds(told) {
    let low = Infinity, high = -Infinity;
    for (const deltas of told.deltas) {
      let whole = 0;
      for (const delta of deltas) { whole += delta; low = Math.min(low, whole); high = Math.max(high, whole); }
    }
    return [low * told.step, high * told.step];
  }

  app.Chart = Chart;
})();
