// A table whose columns stay on the server: regular-table asks for the rows in view, and this fetches them.
import "./vendor/regular-table.js";
import { addKey } from "./keys.js";

const BLOCK = 200;
const grid = document.querySelector("regular-table[data-table]");
const { path, columns, links, reserved } = JSON.parse(grid.dataset.table);
const form = document.querySelector("form.filters");
const own = grid.hasAttribute("data-query") ? new URLSearchParams(grid.dataset.query) : null;

let query = own ?? new URLSearchParams(location.search);
let block = JSON.parse(document.getElementById("first-rows").textContent);
let fetching = null;

const title = ({ name }) => {
  const [key, ...rest] = (query.get("sort") ?? "").split(",").filter(Boolean);
  const arrow = key === name ? " ▲" : key === `-${name}` ? " ▼" : "";
  return name.replaceAll("_", " ") + arrow;
};

function cellText({ kind, texts }, value) {
  if (value === null || value === undefined) return "–";
  if (kind === "flags") return value.length ? value.join(", ").replaceAll("_", " ") : "good";
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "object") return Object.entries(value).map(([key, element]) => `${key}=${element}`).join(", ");
  return texts[value] ?? String(value);
}

async function fetchRows(first, count) {
  if (first >= block.first && first + count <= block.first + block.count && block.first >= 0) return block;
  const start = Math.max(0, first - BLOCK / 4);
  const url = new URLSearchParams(query);
  url.set("format", "json");
  url.set("first", start);
  url.set("count", Math.min(1000, Math.max(BLOCK, count + BLOCK / 2)));
  fetching?.abort();
  fetching = new AbortController();
  const response = await fetch(`${path}?${url}`, { signal: fetching.signal, headers: { accept: "application/json" } });
  const content = await response.json();
  const problem = document.getElementById("problem");
  problem.textContent = response.ok ? "" : content.error;
  if (!response.ok) return { first: 0, count: 0, rows: [], total: 0 };
  block = { first: start, count: Number(url.get("count")), rows: content.rows, total: content.total };
  document.getElementById("total").textContent = content.total.toLocaleString("en");
  return block;
}

async function dataListener(x0, y0, x1, y1) {
  const current = await fetchRows(y0, Math.max(1, y1 - y0)).catch((error) => {
    if (error.name !== "AbortError") document.getElementById("problem").textContent = String(error);
    return block;
  });
  const rows = current.rows.slice(y0 - current.first, y1 - current.first);
  const shown = columns.slice(x0, x1);
  return {
    num_rows: current.total,
    num_columns: columns.length,
    column_headers: shown.map((column) => [title(column)]),
    data: shown.map((column) => rows.map((row) => cellText(column, row[column.name]))),
    metadata: shown.map(() => rows),
  };
}

function linkCells() {
  for (const cell of grid.querySelectorAll("tbody td")) {
    const meta = grid.getMeta(cell);
    const column = columns[meta?.x];
    if (!column) continue;
    cell.classList.toggle("number", column.kind === "number");
    const row = block.rows[meta.y - block.first];
    cell.classList.toggle("bad", Boolean(row) && column.name === "health" && row.health.includes("offline"));
    const target = links[column.name];
    if (!target || !row || row[column.name] === null) continue;
    const link = document.createElement("a");
    link.href = target.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(row[name]));
    const at = new URLSearchParams(location.search).get("at");
    if (at && !/[?&]at=/.test(target)) link.href += `${target.includes("?") ? "&" : "?"}at=${encodeURIComponent(at)}`;
    link.textContent = cell.textContent;
    cell.replaceChildren(link);
  }
  for (const head of grid.querySelectorAll("thead th")) head.title = "Sort by this column";
}

function redraw(next) {
  query = next;
  if (!own) {
    history.replaceState(null, "", query.size ? `${path}?${query}` : path);
    for (const link of document.querySelectorAll("a[data-format]")) {
      const url = new URLSearchParams(query);
      url.set("format", link.dataset.format);
      link.href = `${path}?${url}`;
    }
  }
  grid.scrollTop = 0;
  return fetchAgain();
}

function fetchAgain() {
  block = { first: -1, count: 0, rows: [], total: 0 };
  return grid.draw();
}

function sortBy(name, keep) {
  const keysNow = (query.get("sort") ?? "").split(",").filter(Boolean);
  const descends = keysNow.includes(name);
  const others = keep ? keysNow.filter((key) => key !== name && key !== `-${name}`) : [];
  const next = new URLSearchParams(query);
  next.set("sort", [descends ? `-${name}` : name, ...others].slice(0, 4).join(","));
  if (form) form.elements.sort.value = next.get("sort");
  redraw(next);
}

function fromForm() {
  const next = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) next.set(name, value.trim());
  return next;
}

let typing = null;
form?.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => redraw(fromForm()), 100);
});
form?.addEventListener("submit", (event) => {
  event.preventDefault();
  redraw(fromForm());
});
grid.addEventListener("click", (event) => {
  const head = event.target.closest("thead th");
  const meta = head && grid.getMeta(head);
  if (meta && columns[meta.x]) sortBy(columns[meta.x].name, event.shiftKey);
});
// Tab goes along a row, and its scrolling may replace the cells; arrows go along a column of links.
grid.addEventListener("keydown", (event) => {
  const cell = event.target.closest("tbody td");
  const row = cell?.parentElement[{ ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key]];
  const link = row?.cells[cell.cellIndex]?.querySelector("a");
  if (!link) return;
  event.preventDefault();
  link.focus();
});
addKey("f", "filter the table", () => form?.elements[0]?.focus());
addKey("s", "sort the table", () => form?.elements.sort.focus());
addKey("t", "go to the rows of the table", () => grid.focus());

grid.setDataListener(dataListener);
grid.addStyleListener(linkCells);
document.addEventListener("reading", fetchAgain);
for (const name of reserved) if (name !== "sort") query.delete(name);
await grid.draw();
