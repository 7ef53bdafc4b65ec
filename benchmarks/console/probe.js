// Notes when the user's last input was, and when the last change that followed it was painted, in ms since the epoch.
const probe = { painted: 0, changed: 0, pending: 0, delays: [], longTasks: [] };
window.kframeProbe = probe;
const now = () => performance.timeOrigin + performance.now();

for (const type of ["pointerdown", "keydown", "wheel"]) {
  addEventListener(
    type,
    (event) => {
      const input = performance.timeOrigin + event.timeStamp;
      sessionStorage.setItem("kframe-probe-input", input); // The next page knows it too.
      probe.delays.push(now() - input);
    },
    { capture: true, passive: true },
  );
}

const send = window.fetch;
window.fetch = async (...parameters) => {
  probe.pending += 1;
  try {
    return await send(...parameters);
  } finally {
    probe.pending -= 1;
  }
};

// What changed before a frame is on the screen when the next frame begins.
let isAwaitingPaint = false;
function awaitPaint() {
  const before = probe.changed;
  isAwaitingPaint = true;
  requestAnimationFrame(() =>
    requestAnimationFrame(() => {
      probe.painted = now();
      isAwaitingPaint = false;
      if (probe.changed > before) awaitPaint();
    }),
  );
}
new MutationObserver(() => {
  probe.changed = now();
  if (!isAwaitingPaint) awaitPaint();
}).observe(document, { attributes: true, characterData: true, childList: true, subtree: true });

new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) probe.longTasks.push(entry.duration);
}).observe({ type: "longtask", buffered: true });
