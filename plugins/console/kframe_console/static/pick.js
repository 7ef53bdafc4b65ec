// Point at brokers, racks and directories: the fields of the form and the boxes of the picture say the same.
import { addKey } from "./keys.js";

const form = document.querySelector("form.whatif");
const cluster = document.querySelector(".cluster");
const boxes = [...cluster.querySelectorAll("input[type=checkbox]")];
const brokers = boxes.filter((box) => box.dataset.broker);
const racks = boxes.filter((box) => box.dataset.rack);
const directories = boxes.filter((box) => box.dataset.directory);
const members = (rack) => brokers.filter((box) => box.closest("fieldset") === rack.closest("fieldset"));
const terms = (name) => (form?.elements[name]?.value ?? "").split(",").map((term) => term.trim()).filter(Boolean);

function ids() {
  return new Set(terms("brokers").flatMap((term) => {
    const [first, last = first] = term.split("-").map(Number);
    return Array.from({ length: Math.min(10000, Math.max(0, last - first + 1)) }, (_, index) => String(first + index));
  }));
}

function showFields() {
  const [chosen, names, failed] = [ids(), new Set(terms("racks")), new Set(terms("directories"))];
  for (const box of brokers) box.checked = chosen.has(box.dataset.broker);
  for (const box of directories) box.checked = failed.has(box.dataset.directory);
  for (const rack of racks) {
    rack.checked = names.has(rack.dataset.rack);
    for (const box of members(rack)) box.checked ||= rack.checked;
  }
}

function pick(box) {
  if (box.dataset.rack) {
    for (const member of members(box)) member.checked = box.checked;
  } else if (box.dataset.directory && box.checked) {
    for (const other of directories) if (other.dataset.owner !== box.dataset.owner) other.checked = false;
  } else if (box.dataset.broker) {
    const rack = racks.find((candidate) => members(candidate).includes(box));
    if (rack && !box.checked) rack.checked = false;
  }
  const wholeRacks = racks.filter((rack) => rack.checked);
  const single = brokers.filter((broker) => broker.checked && !wholeRacks.some((rack) => members(rack).includes(broker)));
  const failed = directories.filter((directory) => directory.checked);
  if (form.elements.racks) form.elements.racks.value = wholeRacks.map((rack) => rack.dataset.rack).join(",");
  if (directories.length) {
    form.elements.directories.value = failed.map((directory) => directory.dataset.directory).join(",");
    form.elements.broker.value = failed[0]?.dataset.owner ?? "";
  } else form.elements.brokers.value = single.map((broker) => broker.dataset.broker).join(",");
}

// Roving tabindex: Tab reaches only one box; the arrow keys move along the boxes, or to the next rack.
function rove(box) {
  for (const other of boxes) other.tabIndex = other === box ? 0 : -1;
}

function target(box, key) {
  const position = boxes.indexOf(box);
  const sets = [...cluster.querySelectorAll("fieldset")].filter((set) => set.querySelector("input"));
  const next = (offset) => sets[sets.indexOf(box.closest("fieldset")) + offset]?.querySelector("input");
  return {
    ArrowRight: boxes[position + 1], ArrowLeft: boxes[position - 1], ArrowDown: next(1), ArrowUp: next(-1),
    Home: boxes[0], End: boxes.at(-1),
  }[key];
}

cluster.addEventListener("change", (event) => pick(event.target));
cluster.addEventListener("focusin", (event) => boxes.includes(event.target) && rove(event.target));
cluster.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && boxes.includes(event.target)) form.requestSubmit();
  const next = boxes.includes(event.target) && target(event.target, event.key);
  if (!next) return;
  event.preventDefault();
  next.focus();
});
form?.addEventListener("input", showFields);
form?.addEventListener("submit", () => {
  for (const field of form.elements) if (field.name && !field.value) field.disabled = true;
});
addEventListener("pageshow", () => { for (const field of form?.elements ?? []) field.disabled = false; });
addKey("b", "point at brokers (arrows, Space, Enter predicts)", () => boxes.find((box) => box.tabIndex === 0)?.focus());
addKey("o", "choose the operation", () => document.querySelector(".tabs a[aria-current], .tabs a").focus());
showFields();
if (boxes.length) rove(boxes[0]);
