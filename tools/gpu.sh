#!/usr/bin/env bash
# Builds, tests and measures on a machine with a GPU, and prints one short table last.
#
#   WHEELS=folder tools/gpu.sh [STEP...]
#
# Needs Python 3.11 or later with the build and test requirements of pyproject.toml. Packages that are missing come from
# $WHEELS, as wheels, or as .tar.xz of what a wheel holds; no network is used. Steps: benchmarks kernels arrays demo
# core contract cuda examples memcheck initcheck alone; without any, all of them. BUILT=yes takes the package that an
# earlier call has built. PYTEST_ARGS goes to pytest, BACKTRACE=yes to compute-sanitizer. Logs go to $OUT, or build/gpu.
set -uo pipefail
cd "$(dirname "$0")/.."

export python=${PYTHON:-python3}
logs=$(mkdir -p "${OUT:-build/gpu}" && cd "${OUT:-build/gpu}" && pwd)
export logs
export site=$PWD/build/site
export unpacked=$PWD/build/unpacked
export PYTHONPATH=$site:$unpacked
export PYTHONFAULTHANDLER=1
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_ROOT_USER_ACTION=ignore
# Numba's compiler for CUDA finds the toolkit's libraries from here, where they are not installed as packages.
if [ -d /usr/local/cuda ]; then export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}; fi
[ -n "${WHEELS:-}" ] && export PIP_FIND_LINKS=$WHEELS

table=()
failed=0

# start NAME SECONDS FUNCTION: begins a step, with a time limit and its output in a log.
declare -A began running
start() {
  export -f "$3"
  began[$1]=$SECONDS
  (
    timeout -k 10 "$2" bash -o pipefail -c "$3" >"$logs/$1.log" 2>&1 </dev/null
    status=$?
    echo $SECONDS >"$logs/$1.end"
    exit $status
  ) &
  running[$1]=$!
}

# finish NAME: waits for the step, and notes how it went and its last line.
finish() {
  local status=0 result=ok
  wait "${running[$1]}" || status=$?
  if [ $status -eq 124 ] || [ $status -eq 137 ]; then result='TIMED OUT'; elif [ $status -ne 0 ]; then result="FAILED ($status)"; fi
  [ $status -eq 0 ] || failed=1
  table+=("$(printf '%-11s %-11s %4d s  %s' "$1" "$result" $(($(cat "$logs/$1.end") - began[$1])) \
    "$(grep -v '^\s*$' "$logs/$1.log" | tail -n 1 | cut -c 1-100)")")
  rm -f "$logs/$1.end"
  if [ $status -ne 0 ]; then
    echo "== $1: $result"
    tail -n "${TAIL:-30}" "$logs/$1.log" | cut -c 1-200
  fi
  return $status
}

step() { start "$@" && finish "$1"; }

wanted() {
  [ ${#steps[@]} -eq 0 ] || [[ " ${steps[*]} " == *" $1 "* ]]
}

wheels() {
  "$python" -m pip install --quiet --no-deps nvidia-cuda-runtime-cu12 pytest-timeout || exit
  # Without it the build takes NVRTC from a toolkit of CUDA 12 in $CUDA_HOME.
  "$python" -m pip install --quiet --no-deps nvidia-cuda-nvrtc-cu12 || true
  for archive in "${WHEELS:-.}"/*.tar.xz; do
    if [ -f "$archive" ]; then mkdir -p "$unpacked" && tar xJf "$archive" -C "$unpacked" || exit; fi
  done
  echo 'packages are there'
}

package() {
  rm -rf "$site" && "$python" -m pip install --quiet --no-build-isolation --no-deps --target "$site" . &&
    "$python" -m anabranch info
}

core() {
  cmake -S . -B build/core -G Ninja --log-level=WARNING -DPython_EXECUTABLE="$(command -v "$python")" &&
    cmake --build build/core >"$logs/core-build.log" && ctest --test-dir build/core -j 4 --timeout 60 --output-on-failure &&
    echo "the core's tests passed"
}

# Several processes share the GPU where pytest-xdist is there. UNDER is a program to run the tests under. A test that
# hangs shows where, before its time is up.
pytest() {
  local workers=()
  if [ "$WORKERS" != 0 ] && "$python" -c 'import xdist' 2>/dev/null; then workers=(-n "$WORKERS" --dist worksteal); fi
  ${UNDER:-} "$python" -m pytest -q -p no:cacheprovider -p no:benchmark -o faulthandler_timeout=55 "${workers[@]}" "$@" ${PYTEST_ARGS:-}
}
export -f pytest
export WORKERS=${WORKERS:-5}
export more_files='tests/cuda/test_host_functions.py tests/cuda/test_module.py tests/cuda/test_peer.py
  tests/cuda/test_python_kernels.py tests/cuda/test_streams.py'

# What holds between several CPU devices is tested where there is no GPU.
contract() { ANABRANCH_CPU_DEVICES=1 pytest tests/contract -m 'not memory'; }

cuda() { pytest tests/cuda -m 'not slow and not memory and not alone' && pytest tests/hazards -k cuda; }

# What looks at how much memory of the GPU is free or at its times, and what may take all of it.
alone() { WORKERS=0 pytest tests/contract tests/cuda -m 'memory or slow or alone' -k cuda; }

examples() { pytest tests/test_examples.py tests/test_docs.py; }

demo() { "$python" -m anabranch demo; }

# sanitizer MARKS OPTION...: of the tests in $files. Left out is what fails on purpose, what other libraries do, and what
# runs in interpreters of its own. No backtraces of the host: with those, tests with gates hang (docs/internals/tools.md). Few
# workers: the tool starts them one after the other, five seconds each.
sanitizer() {
  local marks=$1 status=0 found
  shift
  SANITIZER_LOGS=$(mktemp -d)
  export SANITIZER_LOGS
  CUDA_VISIBLE_DEVICES=${CUDA_VISIBLE_DEVICES:-0} ANABRANCH_CPU_DEVICES=1 ANABRANCH_CUDA_SANITIZER=1 \
    PYTHONPATH=$PYTHONPATH:$PWD/tools WORKERS=${SANITIZER_WORKERS:-4} \
    UNDER="compute-sanitizer $* --target-processes all --report-api-errors no --print-limit 10
      --show-backtrace ${BACKTRACE:-no} --log-file $SANITIZER_LOGS/log" \
    pytest $files --timeout 120 -k cuda -m "$marks" -p sanitizer_errors 2>&1 | tee "$SANITIZER_LOGS.pytest" || status=1
  found=$(cat "$SANITIZER_LOGS"/* | grep -c 'ERROR SUMMARY: [1-9]')
  [ "$found" = 0 ] || { cat "$SANITIZER_LOGS"/* "$SANITIZER_LOGS.tests"; status=1; }
  echo "$(tail -n 1 "$SANITIZER_LOGS.pytest"); ${found:-0} logs with errors"
  return $status
}
export -f sanitizer

# The tool takes what a replay accesses for races with allocations and frees that are in order with it.
memcheck() {
  local marks='not slow and not memory and not many_streams and not races and not unseen_order'
  local status=0
  files="$(ls -d tests/contract/*/ tests/contract/test_*.py | grep -v /graphs/) $more_files" \
    sanitizer "$marks" --tool memcheck --track-stream-ordered-races all || status=1
  files=tests/contract/graphs sanitizer "$marks" --tool memcheck || status=1
  return $status
}

initcheck() {
  files="tests/contract $more_files" \
    sanitizer 'not slow and not memory and not uninitialized and not captured_loop' --tool initcheck
}

benchmarks() { "$python" benchmarks/compare.py cuda --lived --save; }

kernels() { "$python" benchmarks/compare.py kernels.cuda --save; }

arrays() { "$python" benchmarks/compare.py copy.cuda math.cuda --save; }

steps=("$@")
[ "${BUILT:-no}" = yes ] || { step wheels 60 wheels && step package 200 package; } || { printf '%s\n' "${table[@]}"; exit 1; }
# What measures comes first and alone, what needs the whole GPU last; the rest runs side by side, the sanitizers apart:
# they take so much of the GPU's memory that others find none.
nvidia-smi --query-gpu=timestamp,memory.used --format=csv,noheader --loop=2 >"$logs/memory.log" 2>/dev/null &
trap 'kill $! 2>/dev/null' EXIT
if wanted benchmarks; then step benchmarks 240 benchmarks; fi
if wanted kernels; then step kernels 160 kernels; fi
if wanted arrays; then step arrays 90 arrays; fi
if wanted demo; then step demo 60 demo; fi
if wanted core; then step core 120 core; fi
for group in 'contract cuda examples' 'memcheck initcheck'; do
  beside=()
  for name in $group; do
    if wanted "$name"; then start "$name" 400 "$name" && beside+=("$name"); fi
  done
  for name in "${beside[@]}"; do finish "$name"; done
done
if wanted alone; then step alone 100 alone; fi

for name in benchmarks kernels arrays; do
  if wanted $name && [ -f "$logs/$name.log" ]; then echo; cat "$logs/$name.log"; fi
done
echo
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU'
printf '%s\n' "${table[@]}"
echo "$SECONDS s"
exit $failed
