// What happens when the page is opened: data are unpacked, figures are drawn as they come near, films are shown.
(() => {
  const app = globalThis.cycletime;
  const charts = new Map(), packs = new Map();

  /** The JSON in a block of the page: base64 of gzip. */
  async function unpack(name) {
    const text = document.getElementById(`data-${name}`).textContent;
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  const packOf = (pack) => {
    if (!packs.has(pack)) packs.set(pack, unpack(`seeds-${pack}`));
    return packs.get(pack);
  };

  const addChart = (element, data) => {
    const chart = new app.Chart(element, data.figures[element.dataset.figure], data, packOf);
    charts.set(element, chart);
    return chart;
  };

  function showFilm(image) {
    image.src = `data:image/gif;base64,${document.getElementById(`data-film-${image.dataset.film}`).textContent}`;
  }

  /** Do something with elements once they are nearly in sight. */
  function whenNear(elements, act) {
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        act(entry.target);
      }
    }, { rootMargin: "400px" });
    elements.forEach((element) => observer.observe(element));
  }

  function themeButton() {
    const button = document.getElementById("theme"), prefers = matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (document.documentElement.dataset.theme ?? (prefers.matches ? "dark" : "light")) === "dark";
    const redraw = () => {
      button.textContent = isDark() ? "Light" : "Dark";
      charts.forEach((chart) => chart.redraw());
    };
    button.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; redraw(); });
    prefers.addEventListener("change", redraw);
    redraw();
  }

  async function start() {
    themeButton();
    for (const box of document.querySelectorAll("main .copies")) {
      box.append(app.copyButton(() => box.querySelector("code").textContent, "Copy the command"));
    }
    whenNear(document.querySelectorAll("[data-film]"), showFilm);
    const [lead, ...others] = document.querySelectorAll("[data-figure]");
    if (lead) addChart(lead, JSON.parse(document.getElementById("data-lead").textContent)).draw();
    const data = await unpack("main");
    for (const place of document.querySelectorAll(".calculator")) app.calculator(place, data.rules);
    // All figures take their room at once, so that links land where they should, and are drawn as they come near.
    others.forEach((element) => addChart(element, data));
    if (location.hash) document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView({ behavior: "instant" });
    whenNear(others, (element) => charts.get(element).draw());
    document.addEventListener("cycletime:carried", ({ detail }) => {
      charts.forEach((chart, element) => {
        if (!element.hasAttribute("data-marks")) return;
        chart.state.mark = detail;
        chart.redraw();
      });
    });
    // On paper all figures are there, in the colours of paper.
    addEventListener("beforeprint", () => {
      document.documentElement.dataset.theme = "light";
      charts.forEach((chart) => chart.draw());
      document.querySelectorAll("[data-film]").forEach(showFilm);
      document.querySelectorAll("#tables details").forEach((each) => { each.open = true; });
    });
    app.tables = data.rules;
    app.readyAt = performance.now();
    document.documentElement.dataset.ready = "yes";
  }

  start();
})();
