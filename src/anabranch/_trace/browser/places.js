// Where things are on the chart.

const AXIS = 30, HEADING = 32, LANE = 34, GAP = 8, BLOCK = 24, EDGE = 20; // pixels
const NEAR = 4; // pixels between the pointer and what it still points at

const main = document.getElementById("lanes"), canvas = document.getElementById("chart");
const tip = document.getElementById("tip"), search = document.getElementById("search");
const context = canvas.getContext("2d");

const view = { begin: 0, end: 0 };
const hidden = new Set(); // kinds switched off in the legend
let matches = null; // what the search has found, null without a search
let pointed = null, kept = null; // operations under the pointer and clicked
let width = 0, height = 0, left = 0, colours = {};

let bottom = AXIS;
lanes.forEach((lane, number) => {
  lane.heads = number === 0 || lane.device !== lanes[number - 1].device;
  if (lane.heads) bottom += HEADING;
  lane.top = bottom;
  bottom += LANE + GAP;
  lane.operations = [];
});
for (const operation of operations) lanes[operation.lane].operations.push(operation);
for (const lane of lanes) {
  // The latest end up to each operation grows along the lane, so what is in view can be found by bisection.
  let latest = -Infinity;
  lane.latest = lane.operations.map((operation) => (latest = Math.max(latest, operation.end)));
}
const waits = operations.filter((operation) => operation.source !== undefined);

const scale = () => (width - left - EDGE) / (view.end - view.begin);
const xOf = (moment) => left + (moment - view.begin) * scale();
const timeAt = (x) => view.begin + (x - left) / scale();
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
  const near = NEAR / scale(), moment = timeAt(x);
  let found = null, least = Infinity;
  for (const operation of between(lane, moment - near, moment + near)) {
    let distance = Math.max(operation.begin - moment, moment - operation.end, 0);
    if (MOMENTS.has(operation.kind)) distance -= near; // marks lie on top of blocks
    if (distance <= least) [found, least] = [operation, distance];
  }
  return found;
}

/** The middle of an operation on the chart, in pixels. */
function placeOf(operation) {
  return { x: xOf((operation.begin + operation.end) / 2), y: yOf(lanes[operation.lane]) + LANE / 2 };
}
