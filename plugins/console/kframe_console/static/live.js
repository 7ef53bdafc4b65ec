// Follows a live source: when there is a new reading, tables fetch their rows again, and other pages their content.
const shown = document.getElementById("reading");
const PAUSE_MS = 500;

const isPressed = (element) => element.matches(":active");
const hasFocusInside = (element) => element !== document.activeElement && element.contains(document.activeElement);

async function follow() {
  const response = await fetch("/reading", { headers: { accept: "application/json" } });
  if (!response.ok) return;
  const { number, read_at: readAt, problem } = await response.json();
  const time = shown.querySelector("time");
  if (time.dateTime !== readAt || shown.title !== (problem ?? "")) {
    time.dateTime = readAt;
    time.textContent = `${readAt.slice(0, 19).replace("T", " ")} UTC`;
    shown.title = problem ?? "";
    shown.classList.toggle("problem", Boolean(problem));
  }
  if (String(number) === shown.dataset.number) return;
  const main = document.getElementById("main");
  if (document.querySelector("main > regular-table")) {
    document.dispatchEvent(new Event("reading"));
  } else if (!main.querySelector("[data-refreshed]")) { // A page with data-refreshed refreshes itself.
    if (isPressed(main) || hasFocusInside(main)) return; // The user is using it: try again later.
    await htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerHTML" });
  }
  shown.dataset.number = number;
}

async function repeat() {
  if (!document.hidden) await follow().catch(() => {});
  setTimeout(repeat, PAUSE_MS);
}

// A click on an element that is replaced before the button is released would be lost.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (isPressed(event.detail.target)) event.detail.shouldSwap = false;
});
// A position of the history that the address names stays as it is.
if (!new URLSearchParams(location.search).has("at")) setTimeout(repeat, PAUSE_MS);
