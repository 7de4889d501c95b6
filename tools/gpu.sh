#!/usr/bin/env bash
# Builds, tests and measures on a machine with a GPU, and prints one short table last.
#
#   WHEELS=folder tools/gpu.sh [quick]
#
# Needs Python 3.11 or later with the build and test requirements of pyproject.toml; wheels that are missing come from $WHEELS, and no network
# is used. `quick` leaves out the benchmarks. PYTEST_ARGS goes to pytest. Logs go to $OUT, or build/gpu.
set -uo pipefail
cd "$(dirname "$0")/.."

export python=${PYTHON:-python3}
logs=$(mkdir -p "${OUT:-build/gpu}" && cd "${OUT:-build/gpu}" && pwd)
export site=$PWD/build/site
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_ROOT_USER_ACTION=ignore
[ -n "${WHEELS:-}" ] && export PIP_FIND_LINKS=$WHEELS

table=()
failed=0

# step NAME SECONDS COMMAND...: runs it with a time limit, its output in a log, and notes how it went and its last line.
step() {
  local name=$1 limit=$2 begin=$SECONDS status
  shift 2
  export -f wheels core package tests benchmarks
  timeout "$limit" bash -c '"$@"' bash "$@" >"$logs/$name.log" 2>&1
  status=$?
  local result=ok
  if [ $status -eq 124 ]; then result='TIMED OUT'; elif [ $status -ne 0 ]; then result="FAILED ($status)"; fi
  [ $status -eq 0 ] || failed=1
  table+=("$(printf '%-12s %-12s %4d s  %s' "$name" "$result" $((SECONDS - begin)) \
    "$(grep -v '^\s*$' "$logs/$name.log" | tail -n 1 | cut -c 1-100)")")
  if [ $status -ne 0 ]; then
    echo "== $name: $result"
    tail -n "${TAIL:-40}" "$logs/$name.log"
  fi
  return $status
}

wheels() {
  "$python" -m pip install --quiet cython-cmake nvidia-cuda-runtime-cu12 pytest-timeout typer || return
  echo 'wheels are there'
}

core() {
  cmake -S . -B build/core -G Ninja --log-level=WARNING -DPython_EXECUTABLE="$(command -v "$python")" &&
    cmake --build build/core && ctest --test-dir build/core -j 4 --output-on-failure --no-tests=error
}

package() {
  rm -rf "$site" && "$python" -m pip install --quiet --no-build-isolation --no-deps --target "$site" .
}

tests() {
  PYTHONPATH=$site "$python" -m pytest -q -p no:cacheprovider "$@" ${PYTEST_ARGS:-}
}

benchmarks() {
  PYTHONPATH=$site "$python" benchmarks/compare.py
}

step wheels 60 wheels
step core 200 core
if step package 200 package; then
  step contract 150 tests tests/contract
  if [ -d tests/cuda ]; then step cuda 100 tests tests/cuda; fi
  if [ "${1:-}" != quick ] && [ -f benchmarks/compare.py ]; then step benchmarks 120 benchmarks; fi
fi

echo
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo 'no GPU'
printf '%s\n' "${table[@]}"
exit $failed
