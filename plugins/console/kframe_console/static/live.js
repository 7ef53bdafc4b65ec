// Follows a live source: when there is a new reading, tables fetch their rows again, and other pages their content.
const shown = document.getElementById("reading");
const main = document.getElementById("main");
const EVERY_MS = 3000;

async function follow() {
  const response = await fetch("/reading", { headers: { accept: "application/json" } });
  if (!response.ok) return;
  const { number, read_at: readAt, problem } = await response.json();
  const time = shown.querySelector("time");
  time.dateTime = readAt;
  time.textContent = `${readAt.slice(0, 19).replace("T", " ")} UTC`;
  shown.title = problem ?? "";
  shown.classList.toggle("problem", Boolean(problem));
  if (String(number) === shown.dataset.number) return;
  shown.dataset.number = number;
  if (main.querySelector("[data-refreshed]")) return; // The page follows by itself.
  if (document.querySelector("main > regular-table")) {
    document.dispatchEvent(new Event("reading"));
  } else if (!main.contains(document.activeElement) || document.activeElement === main) {
    await htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerHTML" });
  }
}

// A position of the history that the address names stays as it is.
if (!new URLSearchParams(location.search).has("at")) setInterval(() => follow().catch(() => {}), EVERY_MS);
