// Keyboard shortcuts. `?` lists them.
const pages = [...document.querySelectorAll("header nav a")];
const dialog = document.getElementById("keys");
const digit = (index) => String(index + 1);

export const keys = new Map();

export function addKey(key, meaning, run) {
  keys.set(key, { meaning, run });
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

function showKeys() {
  const list = document.getElementById("keys-list");
  list.replaceChildren();
  for (const [key, { meaning }] of keys) {
    const term = document.createElement("dt");
    const kbd = document.createElement("kbd");
    kbd.textContent = key;
    term.append(kbd);
    const description = document.createElement("dd");
    description.textContent = meaning;
    list.append(term, description);
  }
  dialog.showModal();
}

addKey("?", "show the keys", showKeys);
pages.forEach((link, index) => index < 9 && addKey(digit(index), link.textContent, () => link.click()));
addKey("m", "go to the content", () => document.getElementById("main").focus());
addKey("d", "switch between dark and light", switchTheme);
addKey("u", "go up to the page above", () => {
  if (location.pathname === "/") return;
  const parent = new URL(location.pathname.replace(/\/[^/]+\/?$/, "") || "/", location);
  const at = new URLSearchParams(location.search).get("at");
  if (parent.pathname === "/") parent.href = document.querySelector("a.brand").href;
  else if (at) parent.searchParams.set("at", at);
  location.href = parent.href;
});

document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, dialog[open]") || event.target.isContentEditable;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && event.target.closest("input, select")) event.target.blur();
  if (isTyping || !keys.has(event.key)) return;
  event.preventDefault();
  keys.get(event.key).run();
});
document.getElementById("theme").addEventListener("click", switchTheme);
document.getElementById("help").addEventListener("click", showKeys);

// Requests of htmx have the CSRF token of the page.
document.addEventListener("htmx:configRequest", (event) => {
  const token = document.querySelector('meta[name="csrf-token"]');
  if (token) event.detail.headers["x-csrf-token"] = token.content;
});
