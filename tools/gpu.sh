#!/usr/bin/env bash
# Builds, tests and measures on a machine with a GPU, and prints one short table last.
#
#   WHEELS=folder tools/gpu.sh [STEP...]
#
# Needs Python 3.11 or later with the build and test requirements of pyproject.toml. Packages that are missing come from
# $WHEELS, as wheels, or as .tar.xz of what a wheel holds; no network is used. Steps: core contract cuda examples
# memcheck initcheck benchmarks; without any, all of them. PYTEST_ARGS goes to pytest. Logs go to $OUT, or build/gpu.
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

# step NAME SECONDS FUNCTION: runs it with a time limit, its output in a log, and notes how it went and its last line.
step() {
  local name=$1 limit=$2 begin=$SECONDS status result=ok
  export -f "$3"
  timeout -k 10 "$limit" bash -o pipefail -c "$3" >"$logs/$name.log" 2>&1
  status=$?
  if [ $status -eq 124 ] || [ $status -eq 137 ]; then result='TIMED OUT'; elif [ $status -ne 0 ]; then result="FAILED ($status)"; fi
  [ $status -eq 0 ] || failed=1
  table+=("$(printf '%-11s %-11s %4d s  %s' "$name" "$result" $((SECONDS - begin)) \
    "$(grep -v '^\s*$' "$logs/$name.log" | tail -n 1 | cut -c 1-100)")")
  if [ $status -ne 0 ]; then
    echo "== $name: $result"
    tail -n "${TAIL:-30}" "$logs/$name.log" | cut -c 1-200
  fi
  return $status
}

wanted() {
  [ ${#steps[@]} -eq 0 ] || [[ " ${steps[*]} " == *" $1 "* ]]
}

wheels() {
  "$python" -m pip install --quiet cython-cmake nvidia-cuda-runtime-cu12 pytest-timeout typer || exit
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
    cmake --build build/core >"$logs/core-build.log" && ctest --test-dir build/core -j 4 --timeout 40 --output-on-failure &&
    echo "the core's tests passed"
}

# Several processes share the GPU where pytest-xdist is there. UNDER is a program to run the tests under.
pytest() {
  local workers=()
  if [ "${WORKERS:-6}" != 0 ] && "$python" -c 'import xdist' 2>/dev/null; then
    workers=(-n "${WORKERS:-6}" --dist worksteal)
  fi
  ${UNDER:-} "$python" -m pytest -q -p no:cacheprovider -p no:benchmark "${workers[@]}" "$@" ${PYTEST_ARGS:-}
}
export -f pytest

contract() { pytest tests/contract; }

# What measures the memory in use comes after the rest, and alone.
cuda() { pytest tests/cuda -m 'not slow' && WORKERS=0 pytest tests/cuda -m slow; }

examples() { pytest tests/test_examples.py tests/test_docs.py && "$python" -m anabranch demo; }

# Successful queries order the host, which the tool does not know, so the driver's synchronize confirms them. Left out is
# what fails on purpose, what other libraries do, and what runs in interpreters of its own.
sanitizer() {
  local report
  report=$(mktemp)
  ANABRANCH_CUDA_CONFIRM_QUERIES=1 UNDER="compute-sanitizer $* --target-processes all --print-limit 10" \
    pytest tests/contract tests/cuda/test_{host_functions,module,peer,python_kernels,streams}.py --timeout 300 \
    -m 'not slow' 2>&1 | tee "$report"
  ! grep -q 'ERROR SUMMARY: [1-9]' "$report" && grep -q ' passed' "$report" && ! grep -qE '[0-9]+ (failed|error)' "$report"
}
export -f sanitizer

memcheck() { sanitizer --tool memcheck --track-stream-ordered-races all; }

initcheck() { sanitizer --tool initcheck; }

benchmarks() { "$python" benchmarks/compare.py cuda --save; }

steps=("$@")
step wheels 60 wheels && step package 200 package || { printf '%s\n' "${table[@]}"; exit 1; }
# The measurements come first and alone.
if wanted benchmarks; then step benchmarks 150 benchmarks; fi
if wanted core; then step core 120 core; fi
if wanted contract; then step contract 150 contract; fi
if wanted cuda; then step cuda 240 cuda; fi
if wanted examples; then step examples 100 examples; fi
if wanted memcheck; then step memcheck 120 memcheck; fi
if wanted initcheck; then step initcheck 120 initcheck; fi

if wanted benchmarks && [ -f "$logs/benchmarks.log" ]; then echo; cat "$logs/benchmarks.log"; fi
echo
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU'
printf '%s\n' "${table[@]}"
echo "$SECONDS s"
exit $failed
