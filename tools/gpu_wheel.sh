#!/usr/bin/env bash
# Tries one wheel with NVRTC of CUDA 13 and of CUDA 12 on a machine with a GPU.
#
#   WHEELS=folder tools/gpu_wheel.sh
#
# $WHEELS holds the wheel for this Python, and of CUDA 12 the wheels cuda-bindings, nvidia-cuda-nvrtc-cu12 and
# nvidia-cuda-runtime-cu12. What else is needed (NumPy, what compiles with CUDA 13) is taken from this Python's own
# packages; no network is used.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
wheels=$(cd "$WHEELS" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheels PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
export ANABRANCH_CACHE_DIR=$work/cache
if [ -d /usr/local/cuda ]; then export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}; fi
cp tests/wheel/smoke.py "$work"
cd "$work"
sha256sum "$wheels"/anabranch-*.whl

echo '== CUDA 13'
"$python" -m pip install -q --pre --no-deps --target cuda13 anabranch
PYTHONPATH=$work/cuda13 "$python" smoke.py 13

# In an environment of its own, whose packages come before those of this Python: NVRTC is looked for among the former
# alone. The compiler of Python kernels is the latter's, of CUDA 13, and left out.
echo '== CUDA 12'
"$python" -m venv --without-pip cuda12
packages=$(cuda12/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
"$python" -m pip --python cuda12/bin/python install -q --pre --no-deps \
  anabranch 'cuda-bindings==12.*' nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12
"$python" -c 'import sys; print(*(path for path in sys.path if path.endswith("-packages")), sep="\n")' >"$packages/base.pth"
cuda12/bin/python smoke.py 12 files stubs errors streams graphs protocols cuda_kernels
