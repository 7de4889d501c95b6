// User input: zoom, pan, hover, search.

const SHORTEST = 1e-5; // ms that the chart shows at least

/** All that there is, in places, with a margin. */
function everything() {
  const begin = placeAt(trace.begin), end = placeAt(trace.end), room = (end - begin) * 0.01;
  return { begin: begin - room, end: end + room };
}

let whole = everything();

/** Show what is between two places, or as near to it as there is something. */
function show(begin, end) {
  const shown = Math.min(Math.max(end - begin, SHORTEST), whole.end - whole.begin);
  const first = (begin + end - shown) / 2;
  view.begin = Math.max(whole.begin, Math.min(first, whole.end - shown));
  view.end = view.begin + shown;
  redraw();
}

function zoom(factor, x = (left + width) / 2) {
  const fixed = viewAt(x);
  show(fixed - (fixed - view.begin) * factor, fixed + (view.end - fixed) * factor);
}

function move(pixels) {
  const moved = pixels / scale(), shown = view.end - view.begin;
  const begin = Math.max(whole.begin, Math.min(view.begin + moved, whole.end - shown));
  show(begin, begin + shown);
}

// The tip

function showTip(operation, x, y) {
  tip.hidden = !operation;
  tip.classList.toggle("kept", operation !== null && operation === kept);
  if (!operation) return;
  const line = place(operation), [title, ...lines] = describe(operation);
  if (line) lines.pop();
  const heading = document.createElement("b"), source = document.createElement("code");
  heading.textContent = title;
  source.textContent = line;
  tip.replaceChildren(heading, `\n${lines.join("\n")}\n`, source);
  const box = tip.getBoundingClientRect(), area = canvas.getBoundingClientRect();
  const right = area.left + x + 16, below = area.top + y + 18;
  tip.style.left = `${Math.max(8, right + box.width > innerWidth ? right - box.width - 32 : right)}px`;
  tip.style.top = `${Math.max(8, below + box.height > innerHeight ? below - box.height - 36 : below)}px`;
}

function point(x, y) {
  const operation = operationAt(x, y);
  canvas.classList.toggle("over", operation !== null);
  if (!kept) showTip(operation, x, y);
  if (operation === pointed) return;
  pointed = operation;
  redraw();
}

/** Keep an operation: in view, with its tip. */
function select(operation) {
  kept = operation;
  if (operation) {
    const lane = lanes[operation.lane], shown = view.end - view.begin;
    const begin = placeAt(operation.begin), away = begin > view.end || placeAt(operation.end) < view.begin;
    if (away) show(begin - shown / 2, begin + shown / 2);
    if (yOf(lane) < AXIS) main.scrollTop = lane.top - AXIS - HEADING;
    if (yOf(lane) + LANE > height) main.scrollTop = lane.top + LANE + GAP - height;
  }
  followKept();
  redraw();
}

function followKept() {
  if (!kept) return showTip(null);
  const { x, y } = placeOf(kept);
  showTip(kept, Math.max(left, Math.min(x, width - EDGE)), y);
}

// Mouse and touch

let drag = null;

const at = (event) => {
  const area = canvas.getBoundingClientRect();
  return [event.clientX - area.left, event.clientY - area.top];
};

canvas.addEventListener("pointerdown", (event) => {
  if (event.button !== 0) return;
  drag = { x: event.clientX, y: event.clientY, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return point(...at(event));
  const x = drag.x - event.clientX, y = drag.y - event.clientY;
  if (!drag.moved && Math.hypot(x, y) < NEAR) return;
  canvas.classList.add("moving");
  move(x);
  main.scrollTop += y;
  drag = { x: event.clientX, y: event.clientY, moved: true };
  if (kept) followKept();
  else showTip(null);
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) select(operationAt(...at(event)));
  drag = null;
  canvas.classList.remove("moving");
});
canvas.addEventListener("pointerleave", () => drag || point(-1, -1));
canvas.addEventListener("dblclick", (event) => {
  const operation = operationAt(...at(event));
  if (!operation) return show(whole.begin, whole.end);
  const begin = placeAt(operation.begin), end = placeAt(operation.end), around = Math.max((end - begin) / 2, SHORTEST);
  show(begin - around, end + around);
  followKept();
});
canvas.addEventListener("wheel", (event) => {
  const [x, y] = at(event);
  if (x < left) return; // over the names it scrolls
  event.preventDefault();
  const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1;
  const sideways = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) move(sideways * pixels);
  else zoom(Math.exp(event.deltaY * pixels * 0.0015), x);
  if (kept) followKept();
  else point(x, y);
}, { passive: false });
main.addEventListener("scroll", () => {
  followKept();
  redraw();
});

// Keys

function step(by) {
  const shown = kept ? lanes[kept.lane].operations : lanes.find((lane) => lane.operations.length)?.operations;
  if (shown) select(shown[kept ? Math.max(0, Math.min(shown.indexOf(kept) + by, shown.length - 1)) : 0]);
}

function stepLane(by) {
  if (!kept) return step(0);
  const lane = lanes[kept.lane + by];
  if (!lane) return;
  const away = (operation) => Math.abs(operation.begin - kept.begin);
  select(lane.operations.reduce((nearest, operation) => (away(operation) < away(nearest) ? operation : nearest)));
}

/** Show the folded gaps as long as they are, or short again. */
function fold(wanted) {
  folding = wanted;
  whole = everything();
  show(whole.begin, whole.end);
  followKept();
}

const KEYS = {
  g: () => fold(!folding),
  ArrowLeft: () => step(-1),
  ArrowRight: () => step(1),
  ArrowUp: () => stepLane(-1),
  ArrowDown: () => stepLane(1),
  "+": () => zoom(1 / 1.5),
  "=": () => zoom(1 / 1.5),
  "-": () => zoom(1.5),
  0: () => show(whole.begin, whole.end),
  Escape: () => select(null),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === search) {
    if (event.key === "Escape") main.focus();
    if (event.key === "Enter") selectMatch(event.shiftKey ? -1 : 1);
    return;
  }
  if (event.key === "/") search.focus();
  else if (KEYS[event.key] && event.target.tagName !== "BUTTON") {
    KEYS[event.key]();
    if (kept) followKept();
  } else return;
  event.preventDefault();
});

// Search and legend

function find(text) {
  const wanted = text.trim().toLowerCase();
  const words = (operation) => describe(operation).join("\n").toLowerCase();
  matches = wanted ? new Set(operations.filter((operation) => words(operation).includes(wanted))) : null;
  document.getElementById("found").textContent = matches ? `${matches.size.toLocaleString("en")} found` : "";
  redraw();
}

function selectMatch(by) {
  const found = [...(matches ?? [])].sort((one, other) => one.begin - other.begin);
  if (found.length) select(found[(found.indexOf(kept) + by + found.length) % found.length]);
}

search.addEventListener("input", () => find(search.value));

function fillLegend() {
  const present = new Set(operations.map(look));
  for (const kind of KINDS.filter((kind) => present.has(kind))) {
    const button = document.createElement("button"), swatch = document.createElement("i");
    button.className = MOMENTS.has(kind) ? "moment" : kind === "wait" || kind === "added" ? "wait" : "";
    button.dataset.kind = kind;
    button.title = "Show or hide";
    button.setAttribute("aria-pressed", "true");
    button.style.setProperty("--colour", `var(--${kind})`);
    button.append(swatch, words(kind));
    button.addEventListener("click", () => {
      if (!hidden.delete(kind)) hidden.add(kind);
      button.setAttribute("aria-pressed", String(!hidden.has(kind)));
      redraw();
    });
    const item = document.createElement("li");
    item.append(button);
    document.getElementById("legend").append(item);
  }
}

function fillOverlap() {
  for (const device of trace.devices) {
    const item = document.createElement("li"), bar = document.createElement("i"), alias = document.createElement("b");
    alias.textContent = device.alias;
    bar.style.setProperty("--share", percent(device.overlap));
    item.append(alias, bar, `overlap ${percent(device.overlap)}`);
    document.getElementById("overlap").append(item);
  }
}

// The page

function resize() {
  width = main.clientWidth;
  height = main.clientHeight;
  arrange(height);
  document.getElementById("content").style.height = `${Math.max(bottom + GAP, height)}px`;
  width = main.clientWidth; // less what a scroll bar takes
  canvas.width = Math.round(width * devicePixelRatio);
  canvas.height = Math.round(height * devicePixelRatio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.font = `12px ${FONT}`;
  const longest = Math.max(80, ...lanes.map((lane) => context.measureText(lane.label).width));
  left = EDGE + Math.min(longest, 240, width / 3) + 20;
  readColours();
  draw();
  followKept();
}

fillLegend();
fillOverlap();
Object.assign(view, whole);
new ResizeObserver(() => requestAnimationFrame(resize)).observe(main); // later: it may change what is observed
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", resize);
resize();

// For tests, and for whoever looks into the page with the browser's console.
window.anabranchTimeline = { lanes, operations, view, show, select, fold, xOf, find, draw, operationAt, placeOf, describe };
