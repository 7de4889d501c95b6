// The layout of the chart.

const AXIS = 30, HEADING = 32, GAP = 8, EDGE = 20; // pixels
const LEAST = 34, MOST = 240; // pixels of a lane
const NEAR = 4; // pixels between the pointer and what it still points at

const main = document.getElementById("lanes"), canvas = document.getElementById("chart");
const tip = document.getElementById("tip"), search = document.getElementById("search");
const context = canvas.getContext("2d");

// What the chart shows, in places: times, less what the gaps are shortened by.
const view = { begin: 0, end: 0 };
const hidden = new Set(); // kinds switched off in the legend
let matches = null; // what the search has found, null without a search
let pointed = null, kept = null; // operations under the pointer and clicked
let width = 0, height = 0, left = 0, colours = {};

let LANE = LEAST, BLOCK = LEAST - 10, bottom = AXIS;
lanes.forEach((lane, number) => {
  lane.heads = number === 0 || lane.device !== lanes[number - 1].device;
  lane.operations = [];
});

/** Place the lanes so that few of them fill the height. */
function arrange(height) {
  const heads = lanes.filter((lane) => lane.heads).length;
  const each = (height - AXIS - heads * HEADING) / Math.max(1, lanes.length) - GAP;
  LANE = Math.round(Math.max(LEAST, Math.min(each, MOST)));
  BLOCK = LANE - 10;
  bottom = AXIS;
  for (const lane of lanes) {
    if (lane.heads) bottom += HEADING;
    lane.top = bottom;
    bottom += LANE + GAP;
  }
}

// Folded gaps

let folding = true;

const shortened = (gap) => (folding ? gap[1] - gap[0] - gap[2] : 0);

function placeAt(moment) {
  let place = moment;
  for (const gap of gaps) {
    if (moment <= gap[0]) break;
    place -= (shortened(gap) * (Math.min(moment, gap[1]) - gap[0])) / (gap[1] - gap[0]);
  }
  return place;
}

function momentAt(place) {
  let before = 0; // what earlier gaps are shortened by
  for (const gap of gaps) {
    const begin = gap[0] - before, shown = gap[1] - gap[0] - shortened(gap);
    if (place <= begin) break;
    if (place < begin + shown) return gap[0] + ((place - begin) / shown) * (gap[1] - gap[0]);
    before += shortened(gap);
  }
  return place + before;
}

for (const operation of operations) lanes[operation.lane].operations.push(operation);
for (const lane of lanes) {
  // The latest end up to each operation grows along the lane, so what is in view can be found by bisection.
  let latest = -Infinity;
  lane.latest = lane.operations.map((operation) => (latest = Math.max(latest, operation.end)));
}
const waits = operations.filter((operation) => operation.source !== undefined);

const scale = () => (width - left - EDGE) / (view.end - view.begin);
const xOf = (moment) => left + (placeAt(moment) - view.begin) * scale();
const viewAt = (x) => view.begin + (x - left) / scale();
const timeAt = (x) => momentAt(viewAt(x));
const yOf = (lane) => lane.top - main.scrollTop;

function* between(lane, begin, end) {
  let low = 0, high = lane.latest.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (lane.latest[middle] < begin) low = middle + 1;
    else high = middle;
  }
  for (; low < lane.operations.length && lane.operations[low].begin <= end; low++) {
    const operation = lane.operations[low];
    if (operation.end >= begin && !hidden.has(look(operation))) yield operation;
  }
}

/** The operation at a place on the chart, in pixels, or null. */
function operationAt(x, y) {
  if (x < left || y < AXIS) return null;
  const lane = lanes.find((lane) => y >= yOf(lane) && y < yOf(lane) + LANE);
  if (!lane) return null;
  let found = null, least = Infinity;
  for (const operation of between(lane, timeAt(x - NEAR), timeAt(x + NEAR))) {
    let distance = Math.max(xOf(operation.begin) - x, x - xOf(operation.end), 0);
    if (MOMENTS.has(operation.kind)) distance -= NEAR; // marks lie on top of blocks
    if (distance <= least) [found, least] = [operation, distance];
  }
  return found;
}

/** The middle of an operation on the chart, in pixels. */
function placeOf(operation) {
  return { x: (xOf(operation.begin) + xOf(operation.end)) / 2, y: yOf(lanes[operation.lane]) + LANE / 2 };
}
