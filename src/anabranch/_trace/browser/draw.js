// The chart.

const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';
const MARK = 7; // pixels that a mark takes
const MOST_ARROWS = 400; // more of them at once hide what they connect

function readColours() {
  const style = getComputedStyle(document.documentElement);
  colours = {};
  for (const name of [...KINDS, "ground", "lane", "line", "text", "faint", "block-text"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  for (const kind of ["wait", "added"]) colours[`${kind}-hatch`] = hatch(colours[kind]);
}

function hatch(colour) {
  const tile = document.createElement("canvas"), ratio = devicePixelRatio, side = 8;
  tile.width = tile.height = side * ratio;
  const pen = tile.getContext("2d");
  pen.scale(ratio, ratio);
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1.8;
  pen.beginPath();
  for (const shift of [-side, 0, side]) {
    pen.moveTo(shift - 2, side + 2);
    pen.lineTo(shift + side + 2, -2);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat");
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

/** Frame what lies in a folded gap, since its lengths are not those of the rest. */
function drawGaps() {
  const below = Math.min(height, bottom - main.scrollTop) - AXIS;
  for (const gap of folding ? gaps : []) {
    const from = Math.max(xOf(gap[0]), left - 4), to = Math.min(xOf(gap[1]), width - EDGE + 4);
    if (to <= from) continue;
    context.save();
    context.strokeStyle = colours.faint;
    context.setLineDash([3, 3]);
    context.strokeRect(from + 0.5, AXIS + 0.5, to - from - 1, below - 1);
    context.restore();
  }
}

const dimmed = (operation) => matches !== null && !matches.has(operation);

function draw() {
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, width, height);
  const places = ticks();
  context.fillStyle = colours.line;
  const below = Math.min(height, bottom - main.scrollTop);
  for (const [moment] of places) context.fillRect(Math.round(xOf(moment)), AXIS, 1, below - AXIS);
  const seen = lanes.filter((lane) => yOf(lane) + LANE > AXIS && yOf(lane) - HEADING < height);
  const marks = seen.map(drawLane);
  drawGaps();
  drawArrows();
  seen.forEach((lane, number) => drawMarks(marks[number], yOf(lane)));
  const chosen = kept ?? pointed;
  if (chosen) outline(chosen);
  drawLabels(seen);
  drawAxis(places);
}

/** Draw what takes time, and give the rest, which belongs on top of the arrows. */
function drawLane(lane) {
  const y = yOf(lane), top = y + (LANE - BLOCK) / 2;
  context.fillStyle = colours.lane;
  context.beginPath();
  context.roundRect(left - 4, y, width - left - EDGE + 8, LANE, 5);
  context.fill();
  context.save();
  clipToChart();
  const marks = [];
  let filled = -1; // the column of pixels of the last narrow block: more in it would not be seen
  for (const operation of between(lane, timeAt(left - 8), timeAt(width))) {
    if (MOMENTS.has(operation.kind)) {
      marks.push(operation);
      continue;
    }
    const from = xOf(operation.begin), to = xOf(operation.end);
    context.globalAlpha = dimmed(operation) ? 0.15 : 1;
    if (to - from > 1.5) {
      drawBlock(operation, Math.max(from, left - 8), Math.min(to, width), top);
    } else if (Math.floor(from) !== filled) {
      filled = Math.floor(from);
      context.fillStyle = colours[look(operation)];
      context.fillRect(filled, top, 1, BLOCK);
    }
  }
  context.restore();
  return marks;
}

function clipToChart() {
  context.beginPath();
  context.rect(left - 4, AXIS, width - left - EDGE + 8, height);
  context.clip();
}

function drawBlock(operation, from, to, top) {
  const gap = to - from > 3 ? 0.6 : 0; // a line between neighbours
  context.beginPath();
  if (to - from > 8) context.roundRect(from, top, to - from - gap, BLOCK, 4);
  else context.rect(from, top, to - from - gap, BLOCK);
  if (operation.kind === "wait") {
    context.fillStyle = colours[`${look(operation)}-hatch`];
    context.strokeStyle = colours[look(operation)];
    context.lineWidth = 1;
    context.fill();
    context.stroke();
    return;
  }
  context.fillStyle = colours[operation.kind];
  context.fill();
  const seenFrom = Math.max(from, left), seenTo = Math.min(to, width - EDGE);
  const shown = fit(titleOf(operation), seenTo - seenFrom - 8);
  if (!shown) return;
  context.fillStyle = colours["block-text"];
  context.textAlign = "center";
  context.fillText(shown, (seenFrom + seenTo) / 2, top + BLOCK / 2 + 4);
}

const widths = new Map();

function fit(name, room) {
  context.font = `11px ${FONT}`;
  if (room < 14) return "";
  if (!widths.has(name)) widths.set(name, context.measureText(name).width);
  const whole = widths.get(name);
  if (whole <= room) return name;
  const letters = Math.floor((name.length * (room - 11)) / whole);
  return letters >= 3 ? name.slice(0, letters) + "…" : "";
}

function drawMarks(marks, y) {
  const drawn = {};
  context.save();
  clipToChart();
  for (const operation of marks) {
    const x = Math.round(xOf(operation.begin)), kind = operation.kind, end = y + LANE;
    // One mark stands for those of its kind that would lie on top of it.
    if (x - drawn[kind] < MARK) continue;
    drawn[kind] = x;
    context.globalAlpha = dimmed(operation) ? 0.15 : 1;
    context.fillStyle = colours[kind];
    if (kind === "record") context.fillRect(x - 0.75, y + 2, 1.5, LANE - 2);
    context.beginPath();
    if (kind === "record") context.rect(x - 3, y, 6, 5);
    if (kind === "alloc") triangle(x, end - 6, end);
    if (kind === "free") triangle(x, end, end - 6);
    context.fill();
  }
  context.restore();
}

function triangle(x, tip, base) {
  context.moveTo(x, tip);
  context.lineTo(x - 4, base);
  context.lineTo(x + 4, base);
}

function drawArrows() {
  const begin = timeAt(left), end = timeAt(width - EDGE), chosen = kept ?? pointed;
  const seen = waits.filter((wait) => {
    const from = Math.min(sourceOf(wait).end, wait.end);
    if (hidden.has(look(wait)) || wait.end < begin || from > end) return false;
    const ys = [yOf(lanes[wait.lane]), yOf(lanes[sourceOf(wait).lane])];
    return Math.max(...ys) > AXIS - LANE && Math.min(...ys) < height;
  });
  const own = (wait) => wait === chosen || sourceOf(wait) === chosen;
  const few = seen.length <= MOST_ARROWS;
  context.save();
  clipToChart();
  if (few) for (const wait of seen) if (!own(wait)) drawArrow(wait, dimmed(wait) ? 0.1 : chosen ? 0.3 : 1);
  if (chosen) for (const wait of seen) if (own(wait)) drawArrow(wait, 1, 2.5);
  context.restore();
  canvas.dataset.arrows = few ? seen.length : 0;
  if (few) return;
  context.font = `11px ${FONT}`;
  context.textAlign = "right";
  const hint = `zoom in, or point at a wait, to see arrows: here are ${seen.length.toLocaleString("en")}`;
  const { width: room } = context.measureText(hint);
  context.fillStyle = colours.ground;
  context.fillRect(width - EDGE - room - 10, height - 26, room + 20, 26);
  context.fillStyle = colours.faint;
  context.fillText(hint, width - EDGE, height - 9);
}

function drawArrow(wait, alpha, weight = 1.5) {
  const source = sourceOf(wait), from = lanes[source.lane], to = lanes[wait.lane];
  const inset = (LANE - BLOCK) / 2, down = from.top < to.top;
  const x0 = xOf(Math.min(source.end, wait.end)), y0 = yOf(from) + (down ? LANE - inset : inset);
  const x1 = xOf(wait.end), y1 = yOf(to) + (down ? inset : LANE - inset);
  const middle = (y0 + y1) / 2, tip = down ? -7 : 7;
  const curve = () => {
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0, middle, x1, middle, x1, y1 + tip / 2);
    context.stroke();
  };
  context.globalAlpha = alpha * 0.75;
  context.strokeStyle = colours.ground;
  context.lineWidth = weight + 2.5;
  curve();
  context.globalAlpha = alpha;
  context.strokeStyle = context.fillStyle = wait.added ? colours.added : colours.faint;
  context.lineWidth = weight;
  curve();
  context.beginPath();
  triangle(x1, y1, y1 + tip);
  context.fill();
  context.globalAlpha = 1;
}

function outline(operation) {
  const y = yOf(lanes[operation.lane]), inset = (LANE - BLOCK) / 2 - 2;
  const from = Math.max(xOf(operation.begin), left - 8), to = Math.min(xOf(operation.end), width);
  if (to < left - 8 || from > width) return;
  const room = Math.max(0, 6 - (to - from)) / 2;
  context.strokeStyle = colours.text;
  context.lineWidth = 2;
  context.beginPath();
  context.roundRect(from - 1.5 - room, y + inset, to - from + 3 + 2 * room, LANE - 2 * inset, 5);
  context.stroke();
}

function drawLabels(seen) {
  context.fillStyle = colours.ground;
  context.fillRect(0, AXIS, left - 4, height);
  context.textAlign = "left";
  for (const lane of seen) {
    const y = yOf(lane);
    if (lane.heads) {
      context.font = `600 13px ${FONT}`;
      context.fillStyle = colours.text;
      context.fillText(lane.device, EDGE, y - 10);
    }
    context.font = `12px ${FONT}`;
    context.fillStyle = colours.text;
    context.fillText(lane.label, EDGE, y + LANE / 2 - 2, left - EDGE - 12);
    context.font = `11px ${FONT}`;
    context.fillStyle = colours.faint;
    if (lane.busy !== undefined) context.fillText(`${percent(lane.busy)} busy`, EDGE, y + LANE / 2 + 12);
  }
}

function ticks() {
  const most = Math.max(2, Math.floor((width - left) / 110)), { begin, end } = view;
  const first = momentAt(begin), last = momentAt(end), folded = folding ? gaps : [];
  const power = 10 ** Math.floor(Math.log10((end - begin) / most));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((step) => (end - begin) / step <= most);
  const [name, size] = unit(Math.max(step * 10, Math.abs(last)));
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const places = [];
  const starts = [first, ...folded.map((gap) => gap[1])], stops = [...folded.map((gap) => gap[0]), last];
  starts.forEach((start, part) => {
    const stop = Math.min(stops[part], last);
    for (let number = Math.ceil(Math.max(start, first) / step); number * step <= stop; number++) {
      places.push([number * step, `${((number * step) / size).toFixed(decimals)} ${name}`]);
    }
  });
  return places;
}

function drawAxis(places) {
  context.fillStyle = colours.ground;
  context.fillRect(0, 0, width, AXIS);
  context.fillStyle = colours.line;
  context.fillRect(0, AXIS - 1, width, 1);
  context.font = `11px ${FONT}`;
  context.textAlign = "center";
  context.fillStyle = colours.faint;
  let free = -Infinity; // where the last label ends
  const label = (words, x) => {
    const half = context.measureText(words).width / 2 + 4;
    if (x - half < free || x < left - 4 || x > width) return;
    context.fillText(words, x, AXIS - 10);
    free = x + half;
  };
  const shortened = folding ? gaps.map((gap) => [(xOf(gap[0]) + xOf(gap[1])) / 2, `⋯ ${time(gap[1] - gap[0])}`]) : [];
  const words = [...places.map(([moment, words]) => [xOf(moment), words]), ...shortened];
  for (const [x, text] of words.sort(([one], [other]) => one - other)) label(text, x);
}

let asked = false;

function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => {
    asked = false;
    draw();
  });
}
