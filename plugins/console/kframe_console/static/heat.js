// A heat map of each two brokers or racks. The canvas is as large as its view, which scrolls over the extent of all cells.
import { addKey } from "./keys.js";

const section = document.querySelector("[data-heat]");
const view = section.querySelector(".heat-view");
const extent = section.querySelector(".heat-extent");
const canvas = document.getElementById("heat");
const readout = document.getElementById("heat-cell");
const GUTTER = 64;
const LARGEST = 56;
const NUMBERS = 30;
const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

let heat = null;
let shades = null;
let pixels = null;
let cell = 8;
let focus = [0, 0];

const clamp = (number, low, high) => Math.max(low, Math.min(high, number));
const value = (row, column) => heat.values[Math.max(row, column)][Math.min(row, column)];
const scrolled = () => [view.scrollLeft, view.scrollTop];
const sides = () => [view.clientWidth, view.clientHeight];
const fitting = () => Math.floor(Math.min((view.clientWidth - GUTTER) / heat.labels.length, LARGEST) * 100) / 100;

function color(name) {
  canvas.style.color = `var(${name})`;
  return getComputedStyle(canvas).color;
}

function shade(number) {
  const share = number === null || heat.high === heat.low ? 0 : (number - heat.low) / (heat.high - heat.low);
  const position = share * (shades.length - 1);
  const low = Math.min(Math.floor(position), shades.length - 2);
  return shades[low].map((from, channel) => Math.round(from + (shades[low + 1][channel] - from) * (position - low)));
}

// One pixel for each cell.
function paint() {
  shades = [0, 1, 2, 3].map((step) => color(`--heat-${step}`).match(/\d+/g).slice(0, 3).map(Number));
  const count = heat.labels.length;
  const image = new ImageData(count, count);
  for (let row = 0; row < count; row++) {
    for (let column = 0; column < count; column++) image.data.set([...shade(value(row, column)), 255], 4 * (row * count + column));
  }
  pixels = new OffscreenCanvas(count, count);
  pixels.getContext("2d").putImageData(image, 0, 0);
  draw();
}

function resize(size) {
  cell = size;
  for (const side of ["width", "height"]) extent.style.setProperty(side, `${GUTTER + heat.labels.length * cell}px`);
}

function zoom(factor, around = focus) {
  const [before, position] = [cell, scrolled()];
  resize(clamp(cell * factor, Math.min(8, fitting()), LARGEST));
  view.scrollTo(...position.map((pixel, axis) => pixel + around[axis] * (cell - before)));
  draw();
}

function draw() {
  const ratio = devicePixelRatio || 1;
  const [width, height] = sides();
  [canvas.width, canvas.height] = [width * ratio, height * ratio];
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "11px system-ui, sans-serif";
  const [x, y] = scrolled().map((pixel) => GUTTER - pixel);
  drawLabels(context, x, y);
  context.beginPath();
  context.rect(GUTTER, GUTTER, width, height);
  context.clip();
  context.imageSmoothingEnabled = false;
  context.drawImage(pixels, x, y, heat.labels.length * cell, heat.labels.length * cell);
  if (cell >= NUMBERS) drawNumbers(context, x, y);
  if (heat.units === "brokers") drawRacks(context, x, y);
  context.lineWidth = 2;
  context.strokeStyle = color("--bad");
  context.strokeRect(x + focus[0] * cell + 1, y + focus[1] * cell + 1, cell - 2, cell - 2);
}

// The rows or columns in view. Those whose middle is hidden have no label.
function visible(axis, isWhole = true) {
  const first = scrolled()[axis] / cell - (isWhole ? 0.5 : 1);
  const last = first + (sides()[axis] - GUTTER) / cell + (isWhole ? 0 : 1);
  return heat.labels.map((_, index) => index).slice(Math.max(0, Math.ceil(first)), Math.max(0, Math.floor(last) + 1));
}

function drawLabels(context, x, y) {
  const text = (index, ...position) => context.fillText(heat.labels[index], ...position);
  const every = (pixels) => (index) => index % Math.max(1, Math.ceil(pixels / cell)) === 0;
  context.fillStyle = color("--muted");
  context.textAlign = "right";
  for (const index of visible(1).filter(every(12))) text(index, GUTTER - 6, y + (index + 0.5) * cell + 4, GUTTER - 8);
  context.textAlign = "center";
  for (const index of visible(0).filter(every(28))) text(index, x + (index + 0.5) * cell, GUTTER - 6, Math.max(28, cell));
}

function drawNumbers(context, x, y) {
  for (const row of visible(1, false)) {
    for (const column of visible(0, false)) {
      const number = value(row, column);
      if (number === null) continue;
      const [red, green, blue] = shade(number);
      context.fillStyle = red + green + blue > 384 ? "#10161a" : "#f6f9fb";
      context.fillText(number.toLocaleString("en"), x + (column + 0.5) * cell, y + (row + 0.5) * cell + 4, cell - 4);
    }
  }
}

function drawRacks(context, x, y) {
  const end = heat.labels.length * cell;
  context.strokeStyle = color("--line");
  for (let index = 1; index < heat.labels.length; index++) {
    if (heat.racks[index] === heat.racks[index - 1]) continue;
    context.strokeRect(x + index * cell, y, 0, end);
    context.strokeRect(x, y + index * cell, end, 0);
  }
}

function cellText([column, row]) {
  const name = (index) => (heat.units === "brokers" ? `broker ${heat.labels[index]}` : `rack ${heat.labels[index]}`)
    + (heat.units === "brokers" && heat.racks[index] ? ` (${heat.racks[index]})` : "");
  const number = value(row, column);
  const units = row === column ? name(row) : `${name(Math.min(row, column))} and ${name(Math.max(row, column))}`;
  return `${units}: ${number === null ? "nothing is led" : number.toLocaleString("en")} ${heat.title.split(" when ")[0]}`;
}

function move(to) {
  focus = to.map((index) => clamp(index, 0, heat.labels.length - 1));
  readout.textContent = cellText(focus);
  draw();
}

function reveal(to) {
  move(to);
  const least = sides().map((side, axis) => (focus[axis] + 1) * cell + GUTTER - side);
  view.scrollTo(...scrolled().map((pixel, axis) => clamp(pixel, least[axis], focus[axis] * cell)));
}

function cellAt(event) {
  const position = [event.offsetX, event.offsetY];
  if (position.some((pixel) => pixel < GUTTER)) return null;
  const indexes = position.map((pixel, axis) => Math.floor((pixel - GUTTER + scrolled()[axis]) / cell));
  return indexes.some((index) => index >= heat.labels.length) ? null : indexes;
}

function open() {
  const names = [...new Set([Math.min(...focus), Math.max(...focus)])].map((index) => heat.labels[index]);
  location.href = `${section.dataset.whatif}&${heat.units}=${encodeURIComponent(names.join(","))}`;
}

const zooms = { in: () => zoom(1.5), out: () => zoom(1 / 1.5), fit: () => zoom(fitting() / cell) };

function onKey(event) {
  const step = STEPS[event.key];
  const last = heat.labels.length - 1;
  if (step) reveal(focus.map((index, axis) => index + step[axis] * (event.shiftKey ? 10 : 1)));
  else if (event.key === "Home") reveal([0, 0]);
  else if (event.key === "End") reveal([last, last]);
  else if (event.key === "Enter") open();
  else if (event.key === "+") zooms.in();
  else if (event.key === "-") zooms.out();
  else if (event.key === "0") zooms.fit();
  else return;
  event.preventDefault();
  event.stopPropagation();
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
  const [low, high] = [heat.low, heat.high].map((number) => number.toLocaleString("en"));
  section.querySelector(".heat-low").textContent = low === high ? `${low} everywhere` : low;
  section.querySelector(".heat-high").textContent = low === high ? "" : high;
  section.querySelector(".heat-bar").hidden = low === high;
  resize(fitting());
  paint();
  canvas.addEventListener("pointermove", (event) => cellAt(event) && move(cellAt(event)));
  canvas.addEventListener("click", (event) => cellAt(event) && (move(cellAt(event)), open()));
  canvas.addEventListener("keydown", onKey);
  canvas.addEventListener("focus", () => move(focus));
  view.addEventListener("scroll", draw);
  view.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, cellAt(event) ?? focus);
  }, { passive: false });
  for (const button of section.querySelectorAll("[data-zoom]")) button.addEventListener("click", zooms[button.dataset.zoom]);
  addEventListener("resize", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new MutationObserver(paint).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}

addKey("h", "go to the heat map (arrows, Shift for ten, + and −, Enter for the what-if)", () => canvas.focus());
start().catch((error) => { document.getElementById("heat-problem").textContent = error.message; });
