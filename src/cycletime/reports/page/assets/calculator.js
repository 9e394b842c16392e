// The calculator's form: what is typed is carried at once, and shown with its formulas, notes and libraries' words.
(() => {
  const app = globalThis.cycletime;
  const SLIDER_MS = [1, 2, 4, 5, 8, 10, 12, 16, 20, 25, 32, 40, 50, 64, 80, 100, 120, 128, 160, 200, 250, 320, 400, 500];
  let count = 0;

  /** An element with attributes and children; text is never read as HTML. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }
  app.make = make;

  /** A button that copies the text of what stands beside it. */
  app.copyButton = (textOf, label) => {
    const button = make("button", { type: "button", class: "copy", "aria-label": label }, "Copy");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(textOf());
      } catch {
        const area = make("textarea", {}, textOf());
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    return button;
  };

  const words = (field) => field.replaceAll("_", " ");
  const nextId = (name) => `calculator-${(count += 1)}-${name}`;

  function labelled(text, input, hint = "") {
    input.id = nextId("field");
    return make("div", { class: "field" }, make("label", { for: input.id }, text, ...(hint ? [make("small", {}, ` ${hint}`)] : [])), input);
  }

  class Calculator {
    constructor(place, tables) {
      this.tables = tables;
      this.start = JSON.parse(place.dataset.start);
      this.inputs = {};
      this.parts = {};
      this.algorithm = this.choice(Object.keys(tables.algorithms), this.start.algorithm, (name) => name.toUpperCase());
      this.rule = make("select");
      this.from = make("input", { type: "text", value: this.start.from, inputmode: "text", spellcheck: "false", autocomplete: "off" });
      this.to = make("input", { type: "text", value: this.start.to, spellcheck: "false", autocomplete: "off" });
      this.slider = make("input", { type: "range", min: 0, max: SLIDER_MS.length - 1, step: 1, "aria-label": "new cycle time", class: "slider" });
      this.library = make("select");
      this.environments = make("input", { type: "number", min: 1, value: 1, step: 1 });
      this.fields = make("div", { class: "fields" });
      this.more = make("div", { class: "fields" });
      this.also = make("div", { class: "also" });
      this.result = make("div", { class: "result", "aria-live": "polite" });
      this.exported = make("div", { class: "exported" });
      place.replaceChildren(this.form(), make("div", { class: "outcome" }, this.result, this.libraryPart()));
      this.algorithm.addEventListener("change", () => this.chooseAlgorithm());
      this.rule.addEventListener("change", () => { this.ruleChosen = true; });
      this.slider.addEventListener("input", () => { this.to.value = `${SLIDER_MS[this.slider.value]}ms`; this.update(); });
      this.to.addEventListener("input", () => this.moveSlider());
      place.addEventListener("input", () => this.update());
      place.addEventListener("change", () => this.update());
      this.chooseAlgorithm(this.start.values);
      this.moveSlider();
      this.update();
    }

    choice(names, chosen, text = (name) => name) {
      return make("select", {}, ...names.map((name) => make("option", { value: name, selected: name === chosen }, text(name))));
    }

    form() {
      return make("form", { class: "asks", onsubmit: (event) => event.preventDefault() },
        make("div", { class: "fields" }, labelled("algorithm", this.algorithm), labelled("tuned at", this.from, "16ms, 62.5Hz")),
        this.fields,
        make("div", { class: "fields" }, labelled("rule", this.rule), labelled("new cycle time", this.to)),
        this.slider,
        make("details", {}, make("summary", {}, "More values, and what else to carry"), this.also, this.more));
    }

    libraryPart() {
      return make("div", { class: "library" },
        make("div", { class: "fields" }, labelled("settings for", this.library), labelled("environments", this.environments, "in parallel")),
        this.exported);
    }

    chooseAlgorithm(given = {}) {
      const name = this.algorithm.value, algorithm = this.tables.algorithms[name];
      this.inputs = {};
      this.parts = {};
      this.rule.replaceChildren(...Object.keys(algorithm.rules).map((rule) =>
        make("option", { value: rule }, rule)));
      this.ruleChosen = false; // until then it is the recommended one
      const field = (quantity) => {
        const usual = algorithm.baseline[quantity.field];
        const value = given[quantity.field] ?? (usual === undefined ? "" : String(usual));
        const input = make("input", { type: "text", inputmode: "decimal", value, autocomplete: "off", placeholder: "not given" });
        this.inputs[quantity.field] = input;
        return labelled(words(quantity.field), input, quantity.symbol);
      };
      const isMain = (quantity) => quantity.field in algorithm.baseline || quantity.field in given;
      this.fields.replaceChildren(...algorithm.quantities.filter(isMain).map(field));
      this.more.replaceChildren(...algorithm.quantities.filter((quantity) => !isMain(quantity)).map(field));
      this.actionSize = algorithm.has_action_size ? make("input", { type: "number", min: 1, step: 1, value: "" }) : null;
      if (this.actionSize) this.more.append(labelled("action size", this.actionSize, "d"));
      this.also.replaceChildren(...Object.keys(algorithm.parts).map((part) => {
        const box = make("input", { type: "checkbox" });
        this.parts[part] = box;
        return make("label", {}, box, ` ${part.replaceAll("-", " ")}`);
      }));
      const libraries = Object.keys(this.tables.libraries).filter((library) => name in this.tables.libraries[library].algorithms);
      this.library.replaceChildren(...libraries.map((library) => make("option", { value: library }, library)));
    }

    moveSlider() {
      try {
        const ms = 1000 * app.numbers.number(app.numbers.duration(this.to.value));
        const far = (each) => Math.abs(Math.log(each / ms));
        this.slider.value = SLIDER_MS.reduce((best, each, index) => (far(each) < far(SLIDER_MS[best]) ? index : best), 0);
      } catch { /* what is typed is not finished yet, and the result says so */ }
    }

    asked() {
      const values = Object.fromEntries(Object.entries(this.inputs).map(([field, input]) => [field, input.value]));
      const also = Object.keys(this.parts).filter((part) => this.parts[part].checked);
      return { algorithm: this.algorithm.value, from: this.from.value, to: this.to.value, rule: this.rule.value, also, values,
        actionSize: this.actionSize?.value ?? "", environments: Math.max(1, Math.round(Number(this.environments.value) || 1)) };
    }

    /** The same transfer as a command. */
    command(asked, carried) {
      const options = [`cycletime transfer ${asked.algorithm}`, `--from ${app.numbers.spanText(carried.from)}`, `--to ${app.numbers.spanText(carried.to)}`];
      if (asked.rule !== app.recommend(this.tables.algorithms[asked.algorithm], asked.values).rule) options.push(`--rule ${asked.rule}`);
      for (const [field, text] of Object.entries(asked.values)) {
        if (text.trim()) options.push(`--${field.replaceAll("_", "-")} ${text.trim()}`);
      }
      if (asked.actionSize) options.push(`--action-size ${asked.actionSize}`);
      if (asked.also.length) options.push(`--also ${asked.also.join(" ")}`);
      return options.join(" ");
    }

    update() {
      const asked = this.asked();
      if (!this.ruleChosen) asked.rule = this.rule.value = app.recommend(this.tables.algorithms[asked.algorithm], asked.values).rule;
      this.slider.setAttribute("aria-valuetext", asked.to);
      let carried;
      try {
        carried = app.carry(this.tables, asked);
        this.result.replaceChildren(...this.table(asked, carried));
      } catch (error) {
        this.result.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
        this.exported.replaceChildren();
        return;
      }
      try {
        const found = app.exportTo(this.tables, carried, this.library.value, asked.environments);
        const code = make("pre", { tabindex: 0 }, make("code", {}, found.lines.join("\n")));
        this.exported.replaceChildren(make("div", { class: "copies" }, code, app.copyButton(() => found.lines.join("\n"), "Copy the settings")), notes(found.notes));
      } catch (error) {
        this.exported.replaceChildren(make("p", { class: "wrong", role: "alert" }, error.message));
      }
      document.dispatchEvent(new CustomEvent("cycletime:carried", { detail: 1000 * app.numbers.number(carried.to) }));
    }

    table(asked, carried) {
      const [from, to] = [carried.from, carried.to].map(app.numbers.spanText);
      const rho = carried.rho.d === 1n ? String(carried.rho.n) : `${carried.rho.n}/${carried.rho.d}`;
      const head = ["", `at ${from}`, `at ${to}`, "formula of x0", "in seconds"].map((cell) => make("th", { scope: "col" }, cell));
      const rows = carried.rows.map((row) => make("tr", {},
        make("th", { scope: "row" }, `${words(row.field)} `, make("small", {}, row.symbol)),
        make("td", {}, row.before), make("td", { class: row.before === row.after ? "" : "changed" }, row.after),
        make("td", {}, make("code", {}, row.formula)),
        make("td", {}, row.seconds.replace("->", "→"), ...(row.span ? [make("small", {}, ` ${row.span}`)] : []))));
      const command = this.command(asked, carried);
      return [
        make("div", { class: "scrolls", tabindex: 0, role: "region", "aria-label": "Carried values" },
          make("table", {}, make("caption", {}, `rho = dt / dt0 = ${rho}`), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))),
        notes(carried.notes),
        make("p", {}, carried.closing),
        make("div", { class: "copies" }, make("pre", { tabindex: 0 }, make("code", {}, command)), app.copyButton(() => command, "Copy the command")),
      ];
    }
  }

  const notes = (texts) => make("ul", { class: "notes" }, ...texts.map((text) => make("li", {}, text)));

  /** Make a calculator in its place. */
  app.calculator = (place, tables) => new Calculator(place, tables);
})();
