// A heat map of each two brokers or racks on a canvas: as many cells as fit are drawn, the rest is reached by moving.
import { addKey } from "/static/keys.js";

const section = document.querySelector("[data-heat]");
const canvas = document.getElementById("heat");
const readout = document.getElementById("heat-cell");
const GUTTER = 64;
const LARGEST = 56;

let heat = null;
let pixels = null;
let cell = 8;
let origin = [0, 0];
let focus = [0, 0];

const clamp = (number, low, high) => Math.max(low, Math.min(high, number));
const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark"
  || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
const value = (row, column) => heat.values[Math.max(row, column)][Math.min(row, column)];

function color(name) {
  canvas.style.color = `var(${name})`;
  return getComputedStyle(canvas).color;
}

// From the ground of the page to a strong colour, so that zero is quiet in both themes.
function shades() {
  return dark() ? [[26, 33, 38], [38, 74, 97], [66, 133, 165], [150, 208, 238]] : [[246, 249, 251], [190, 217, 232], [84, 147, 184], [10, 56, 86]];
}

function shade(share) {
  const stops = shades();
  const position = share * (stops.length - 1);
  const low = Math.min(Math.floor(position), stops.length - 2);
  return stops[low].map((from, channel) => Math.round(from + (stops[low + 1][channel] - from) * (position - low)));
}

function share(number) {
  return number === null || heat.high === heat.low ? 0 : (number - heat.low) / (heat.high - heat.low);
}

function paint() {
  const count = heat.labels.length;
  const image = new ImageData(count, count);
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < count; column++) image.data.set([...shade(share(value(row, column))), 255], 4 * (row * count + column));
  }
  pixels = new OffscreenCanvas(count, count);
  pixels.getContext("2d").putImageData(image, 0, 0);
}

const shown = () => Math.max(1, Math.floor((canvas.clientWidth - GUTTER) / cell));

function fit() {
  cell = Math.min((canvas.clientWidth - GUTTER) / heat.labels.length, LARGEST);
  origin = [0, 0];
}

function zoom(factor, around = focus) {
  const before = cell;
  const least = Math.min(8, (canvas.clientWidth - GUTTER) / heat.labels.length);
  cell = clamp(cell * factor, least, LARGEST);
  origin = origin.map((first, axis) => around[axis] - ((around[axis] - first) * before) / cell);
  draw();
}

function draw() {
  const ratio = devicePixelRatio || 1;
  const side = canvas.clientWidth;
  const count = heat.labels.length;
  const height = Math.min(side, GUTTER + count * cell);
  canvas.width = side * ratio;
  canvas.height = height * ratio;
  canvas.style.setProperty("height", `${height}px`);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.imageSmoothingEnabled = false;
  origin = origin.map((first) => clamp(first, 0, Math.max(0, count - shown())));
  const [x, y] = origin;
  const span = Math.min(count, (side - GUTTER) / cell);
  drawCells(context, span);
  context.font = "11px system-ui, sans-serif";
  drawLabels(context, span);
  if (cell >= 30) drawNumbers(context, span);
  drawRacks(context, span);
  context.lineWidth = 2;
  context.strokeStyle = color("--bad");
  context.strokeRect(GUTTER + (focus[0] - x) * cell - 1, GUTTER + (focus[1] - y) * cell - 1, cell + 2, cell + 2);
}

// Whole cells, of which the first and the last may be cut off: a picture that begins within a pixel would be inexact.
function drawCells(context, span) {
  const [column, row] = origin.map(Math.floor);
  const [width, height] = [column, row].map((first) => Math.min(heat.labels.length - first, Math.ceil(span) + 1));
  const [left, top] = [column, row].map((first, axis) => GUTTER + (first - origin[axis]) * cell);
  context.save();
  context.beginPath();
  context.rect(GUTTER, GUTTER, span * cell, span * cell);
  context.clip();
  context.drawImage(pixels, column, row, width, height, left, top, width * cell, height * cell);
  context.restore();
}

function drawLabels(context, span) {
  const every = Math.max(1, Math.ceil(28 / cell));
  context.fillStyle = color("--muted");
  for (let index = Math.ceil(origin[1]); index < origin[1] + span - 0.5; index++) {
    if (index % Math.max(1, Math.ceil(12 / cell))) continue;
    context.textAlign = "right";
    context.fillText(heat.labels[index], GUTTER - 6, GUTTER + (index - origin[1] + 0.5) * cell + 4, GUTTER - 8);
  }
  for (let index = Math.ceil(origin[0]); index < origin[0] + span - 0.5; index++) {
    if (index % every) continue;
    context.textAlign = "center";
    context.fillText(heat.labels[index], GUTTER + (index - origin[0] + 0.5) * cell, GUTTER - 6, every * cell);
  }
}

function drawNumbers(context, span) {
  context.textAlign = "center";
  for (let row = Math.ceil(origin[1]); row < origin[1] + span - 0.5; row++) {
    for (let column = Math.ceil(origin[0]); column < origin[0] + span - 0.5; column++) {
      const number = value(row, column);
      if (number === null) continue;
      context.fillStyle = dark() === share(number) > 0.5 ? "#10161a" : "#f6f9fb";
      context.fillText(number.toLocaleString("en"), GUTTER + (column - origin[0] + 0.5) * cell, GUTTER + (row - origin[1] + 0.5) * cell + 4, cell - 4);
    }
  }
}

function drawRacks(context, span) {
  context.strokeStyle = color("--line");
  context.lineWidth = 1;
  const end = GUTTER + span * cell;
  for (let index = 1; heat.units === "brokers" && index < heat.labels.length; index++) {
    if (heat.racks[index] === heat.racks[index - 1]) continue;
    const [x, y] = origin.map((first) => GUTTER + (index - first) * cell);
    context.beginPath();
    if (x > GUTTER && x < end) { context.moveTo(x, GUTTER); context.lineTo(x, end); }
    if (y > GUTTER && y < end) { context.moveTo(GUTTER, y); context.lineTo(end, y); }
    context.stroke();
  }
}

function cellText([column, row]) {
  const name = (index) => (heat.units === "brokers" ? `broker ${heat.labels[index]}` : `rack ${heat.labels[index]}`)
    + (heat.units === "brokers" && heat.racks[index] ? ` (${heat.racks[index]})` : "");
  const number = value(row, column);
  const who = row === column ? name(row) : `${name(Math.min(row, column))} and ${name(Math.max(row, column))}`;
  return `${who}: ${number === null ? "nothing is led" : number.toLocaleString("en")} ${heat.title.split(" when ")[0]}`;
}

function move(to, follow) {
  focus = to.map((index) => clamp(index, 0, heat.labels.length - 1));
  if (follow) origin = origin.map((first, axis) => clamp(first, focus[axis] - shown() + 1, focus[axis]));
  readout.textContent = cellText(focus);
  draw();
}

function at(event) {
  const box = canvas.getBoundingClientRect();
  const position = [event.clientX - box.left, event.clientY - box.top];
  if (position.some((pixel) => pixel < GUTTER)) return null;
  const indexes = position.map((pixel, axis) => Math.floor(origin[axis] + (pixel - GUTTER) / cell));
  return indexes.some((index) => index >= heat.labels.length) ? null : indexes;
}

function open() {
  const names = [...new Set([Math.min(...focus), Math.max(...focus)])].map((index) => heat.labels[index]);
  location.href = `${section.dataset.whatif}&${heat.units}=${encodeURIComponent(names.join(","))}`;
}

const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

function onKey(event) {
  const step = STEPS[event.key];
  const last = heat.labels.length - 1;
  if (step) move(focus.map((index, axis) => index + step[axis] * (event.shiftKey ? 10 : 1)), true);
  else if (event.key === "Home") move([0, 0], true);
  else if (event.key === "End") move([last, last], true);
  else if (event.key === "Enter") open();
  else if (event.key === "+") zoom(1.5);
  else if (event.key === "-") zoom(1 / 1.5);
  else if (event.key === "0") { fit(); draw(); }
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function scaleText() {
  const scale = document.getElementById("scale");
  const bar = document.createElement("canvas");
  [bar.width, bar.height] = [120, 10];
  for (let x = 0; x < 120; x++) {
    const context = bar.getContext("2d");
    context.fillStyle = `rgb(${shade(x / 119)})`;
    context.fillRect(x, 0, 1, 10);
  }
  const [low, high] = [heat.low, heat.high].map((number) => number.toLocaleString("en"));
  scale.replaceChildren(...(low === high ? [`${low} everywhere`] : [low, " ", bar, " ", high]));
}

function repaint() {
  paint();
  scaleText();
  draw();
}

async function start() {
  const response = await fetch(section.dataset.heat, { headers: { accept: "application/json" } });
  const content = await response.json();
  if (!response.ok) throw new Error(content.error);
  heat = content;
  const numbers = heat.values.flat().filter((number) => number !== null);
  heat.low = numbers.reduce((least, number) => Math.min(least, number), Infinity);
  heat.high = numbers.reduce((most, number) => Math.max(most, number), -Infinity);
  if (!numbers.length) throw new Error("found no brokers, expected some that are up");
  fit();
  repaint();
  canvas.addEventListener("pointermove", (event) => at(event) && move(at(event), false));
  canvas.addEventListener("click", (event) => at(event) && (move(at(event), false), open()));
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("focus", () => move(focus, true));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && shown() >= heat.labels.length) return;
    event.preventDefault();
    if (event.ctrlKey) zoom(event.deltaY < 0 ? 1.25 : 0.8, at(event) ?? focus);
    else { origin = [origin[0] + event.deltaX / cell, origin[1] + event.deltaY / cell]; draw(); }
  }, { passive: false });
  for (const button of section.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => (button.dataset.zoom === "fit" ? (fit(), draw()) : zoom(button.dataset.zoom === "in" ? 1.5 : 1 / 1.5)));
  }
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  new MutationObserver(repaint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}

addKey("h", "go to the heat map (arrows, Shift for ten, + and −, Enter for the what-if)", () => canvas.focus());
start().catch((error) => { document.getElementById("heat-problem").textContent = error.message; });
