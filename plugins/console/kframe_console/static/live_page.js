// The curves of the live page, and the buttons and keys of the demo. htmx replaces what is text.
import { addKey } from "./keys.js";

const SAMPLES_MAX = 1200;
const COLOURS = ["#3a86b4", "#c9622f", "#5f9440", "#9068b8", "#b48f22", "#3f978d", "#b94f78", "#7b868f"];
const contact = document.getElementById("contact");
const clock = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
const style = (name) => getComputedStyle(document.body).getPropertyValue(name);

class Curves {
  constructor(id, unit) {
    this.element = document.getElementById(id);
    this.names = [];
    this.data = [[]];
    const axis = { stroke: () => style("color"), grid: { stroke: () => style("border-color"), width: 0.3 }, ticks: { width: 0.3 } };
    this.value = (_plot, number) => (typeof number === "number" ? number.toLocaleString("en", { maximumFractionDigits: 2 }) + unit : "–");
    this.plot = new uPlot(
      { ...this.size(), series: [{ label: "UTC", value: (_plot, time) => (time === null ? "–" : clock(time)) }], axes: [{ ...axis, values: (_plot, ticks) => ticks.map(clock) }, { ...axis, size: 55 }], scales: { y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } } },
      this.data,
      this.element,
    );
  }

  size() {
    return { width: Math.max(280, this.element.clientWidth), height: 180 };
  }

  // `columns` has the new values of each curve, by name; a new curve begins with nulls.
  add(times, columns) {
    for (const name of Object.keys(columns)) {
      if (this.names.includes(name)) continue;
      this.names.push(name);
      this.data.push(this.data[0].map(() => null));
      this.plot.addSeries({ label: name, stroke: COLOURS[(this.names.length - 1) % COLOURS.length], width: 1.5, value: this.value, points: { show: false } });
    }
    const extend = (old, added) => [...old, ...added].slice(-SAMPLES_MAX);
    const none = times.map(() => null);
    this.data = [extend(this.data[0], times), ...this.names.map((name, index) => extend(this.data[index + 1], columns[name] ?? none))];
    this.plot.setData(this.data);
    if (this.plot.cursor.left < 0) this.plot.setLegend({ idx: this.data[0].length - 1 }); // No cursor: the newest values.
  }
}

function startCurves() {
  const queue = new Curves("queue-plot", "");
  const latency = new Curves("latency-plot", " ms");
  let after = 0;
  const update = async () => {
    try {
      const response = await fetch(`${location.pathname}?format=json&after=${after}`);
      const content = await response.json();
      if (!response.ok) throw new Error(content.error);
      const { times, events_waiting, requests_waiting, p95_ms } = content.curves;
      if (content.sample < after) after = 0; // The console has started again.
      else if (times.length) {
        queue.add(times, { events: events_waiting, requests: requests_waiting });
        latency.add(times, p95_ms);
        after = content.sample;
      }
      contact.textContent = "";
    } catch (error) {
      contact.textContent = `The console does not answer: ${error.message}`;
    }
  };
  const repeat = async () => {
    if (!document.hidden) await update();
    setTimeout(repeat, 1000);
  };
  repeat();
  addEventListener("resize", () => [queue, latency].forEach((curves) => curves.plot.setSize(curves.size())));
  document.getElementById("theme").addEventListener("click", () => [queue, latency].forEach((curves) => curves.plot.redraw()));
}

function startDemo(form) {
  const { broker, topic } = form.elements;
  const mark = () => {
    for (const tile of document.querySelectorAll("[data-broker]")) tile.setAttribute("aria-pressed", tile.dataset.broker === broker.value);
  };
  const choose = (value) => {
    broker.value = value;
    mark();
    history.replaceState(null, "", `${location.pathname}?broker=${encodeURIComponent(value)}`);
  };
  const step = (by) => {
    const index = Math.min(Math.max(broker.selectedIndex + by, 0), broker.options.length - 1);
    choose(broker.options[index].value);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const response = await fetch(`${form.getAttribute("action")}?format=json`, { method: "POST", body, headers: { accept: "application/json" } });
    contact.textContent = response.ok ? "" : (await response.json()).error;
  });
  broker.addEventListener("change", () => choose(broker.value));
  document.addEventListener("click", (event) => {
    const tile = event.target.closest("[data-broker]");
    if (tile) choose(tile.dataset.broker);
  });
  document.body.addEventListener("htmx:afterSwap", mark);
  for (const button of form.querySelectorAll("[data-key]")) {
    addKey(button.dataset.key, button.firstChild.textContent.trim().toLowerCase(), () => form.requestSubmit(button));
  }
  addKey("b", "choose the broker", () => broker.focus());
  addKey("[", "choose the broker before", () => step(-1));
  addKey("]", "choose the next broker", () => step(1));
  addKey("n", "name a new topic", () => topic.focus());
  mark();
}

if (document.getElementById("queue-plot")) startCurves();
const form = document.getElementById("demo");
if (form) startDemo(form);
