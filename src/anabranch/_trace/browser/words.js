// The trace data, and the text for its operations.

const trace = JSON.parse(document.getElementById("data").textContent);
const { lanes, operations, gaps } = trace;

const KINDS = [
  "kernel", "copy", "fill", "host", "graph", "collective", "compile", "wait", "added", "record", "alloc", "free",
];
const MOMENTS = new Set(["record", "alloc", "free"]);
const UNITS = [["s", 1e3], ["ms", 1], ["µs", 1e-3], ["ns", 1e-6]];

const unit = (duration) => UNITS.find(([, size]) => duration >= size) ?? UNITS.at(-1);

function time(milliseconds) {
  const [name, size] = milliseconds ? unit(milliseconds) : UNITS[1];
  return `${Number((milliseconds / size).toPrecision(4))} ${name}`;
}

function size(nbytes) {
  const power = Math.min(Math.floor(Math.log2(Math.max(nbytes, 1)) / 10), 4);
  return `${Number((nbytes / 1024 ** power).toPrecision(4))} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
}

const percent = (share) => `${Math.round(share * 100)}%`;
const look = (operation) => (operation.added ? "added" : operation.kind);
const words = (kind) => (kind === "added" ? "added wait" : kind);
const titleOf = (operation) => (operation.kind === "compile" ? `compile ${operation.name}` : operation.name);
const sourceOf = (operation) => operations[operation.source];

function place(operation) {
  if (operation.file === undefined) return "";
  return operation.line === undefined ? operation.file : `${operation.file}:${operation.line}`;
}

/** All that is known of an operation, as lines: the first is its title, the last its source line. */
function describe(operation) {
  const lane = lanes[operation.lane], source = sourceOf(operation), took = operation.end - operation.begin;
  let title = words(look(operation));
  if (operation.name !== operation.kind) title += ` ${operation.name}`;
  if (source) title += ` for ${source.name} of ${lanes[source.lane].label}`;
  if (operation.outcome) title += `, ${operation.outcome}`;
  const digits = took >= 0.05 ? 3 : 6;
  const when = MOMENTS.has(operation.kind)
    ? `at ${operation.begin.toFixed(3)} ms`
    : `${operation.begin.toFixed(digits)} to ${operation.end.toFixed(digits)} ms, ${time(took)}`;
  const bytes = operation.nbytes === undefined ? "" : size(operation.nbytes);
  return [title, `${lane.label} of ${lane.device}`, when, bytes, place(operation)].filter(Boolean);
}
