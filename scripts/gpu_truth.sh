#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks of this program that need a GPU, in about 8 minutes: each check is one JSON line in $OUT/gpu_truth.jsonl,
# and none stops the next. docs/dev/gpu-checks.md has how to run it and what to send back.
#
#   scripts/gpu_truth.sh                            # builds, then checks cuda:0
#   TRAIN=build/release/apps/train scripts/gpu_truth.sh
#   DEVICE=cpu SCALE=small scripts/gpu_truth.sh     # the same commands on a CPU: finds mistakes of the script, and what
#                                                   # does not need a GPU
# DEVICE   cuda:0 or cpu             SCALE  full or small (fewer and smaller runs)
# OUT      folder of results         TRAIN  a built program; without it build-gpu is made from the sources
# HOOKS    train_with_hooks of the same build; by default where the build of TRAIN has it
# DATA     a folder with Fashion-MNIST's four IDX files, for whole runs
# ONLY     names of checks, separated by spaces; CUDA_HOME, CMAKE_PREFIX_PATH as for any build
#
# A check ends with 0 (passes), 1 (fails) or 77 (unknown here: it needs a GPU, or a tool is missing).
set -u
cd "$(dirname "$0")/.."
export DEVICE=${DEVICE:-cuda:0} SCALE=${SCALE:-full} OUT=${OUT:-$PWD/gpu_truth_results} BUILD=${BUILD:-$PWD/build-gpu}
export TRAIN=${TRAIN:-$BUILD/apps/train} DATA=${DATA:-}
export HOOKS=${HOOKS:-$(dirname "$(dirname "$TRAIN")")/tests/hooks/train_with_hooks}
mkdir -p "$OUT"
OUT=$(cd "$OUT" && pwd)

on_gpu() { [[ $DEVICE == cuda* ]]; }
small() { [[ $SCALE == small ]]; }
only_a_gpu() { on_gpu || { echo "needs a GPU"; exit 77; }; }
# full or small
pick() { if small; then echo "$2"; else echo "$1"; fi; }
figure() { python3 scripts/gpu_truth_figures.py "$@"; }

# Images of 4 classes that a small network learns in seconds, as IDX files.
made_data() {
  local folder=$OUT/data-$1 side=$1 count=$2
  [ -e "$folder/done" ] || {
    mkdir -p "$folder"
    python3 - "$folder" "$side" "$count" <<'PY'
import pathlib, sys
sys.path.insert(0, "scripts")
import made_idx
folder, side, count = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
made_idx.write_idx(folder, "train", count, side=side, seed=1)
made_idx.write_idx(folder, "t10k", count // 4, side=side, seed=2)
(folder / "done").write_text("")
PY
  }
  echo "$folder"
}

# A run of its own: its last lines in case it fails. Arguments: name, then options.
run_of() {
  local name=$1
  shift
  rm -rf "$OUT/runs/$name"
  "$TRAIN" --device "$DEVICE" --run-dir "$OUT/runs/$name" --seed 3 --no-report "$@" > "$OUT/runs-$name.log" 2>&1
  local code=$?
  [ $code = 0 ] || tail -5 "$OUT/runs-$name.log"
  return $code
}
weights_of() { sha256sum "$OUT/runs/$1/checkpoints/last/model.safetensors" | cut -c1-16; }

check_facts() {
  nproc
  lscpu | grep -E "Model name|Socket|NUMA node\(s\)"
  cmake --version 2> /dev/null | head -1
  "$TRAIN" --version
  ldd "$TRAIN" | grep -cE "torch_cuda|c10_cuda" | sed 's/^/libraries of CUDA: /'
  on_gpu || return 0
  nvidia-smi -L
  nvidia-smi --query-gpu=driver_version,clocks.max.sm,power.limit,persistence_mode --format=csv,noheader
  ldd "$TRAIN" | grep -q torch_cuda
}

check_build() {
  [ -x "$TRAIN" ] && { echo "was built before: $TRAIN"; return 0; }
  cmake -G Ninja -S . -B "$BUILD" -DCMAKE_BUILD_TYPE=Release > "$OUT/cmake.log" 2>&1 || { tail -5 "$OUT/cmake.log"; return 1; }
  cmake --build "$BUILD" --target train > "$OUT/build.log" 2>&1 || { grep -m5 error "$OUT/build.log"; return 1; }
  cmake --build "$BUILD" --target train_with_hooks > "$OUT/build-hooks.log" 2>&1 || echo "train_with_hooks is not built"
  echo "built"
}

# The device is seen, computes, and its measured speeds are not set-up times.
check_check() {
  "$TRAIN" check --device "$DEVICE" --json --output "$OUT/check.json" --data-dir "$(made_data 28 400)" || return 1
  figure check "$OUT/check.json" "$DEVICE"
}

# The defaults are the device's fast ones, and the run reports them.
check_defaults() {
  run_of defaults --data-dir "$(made_data 28 400)" --model small_cnn --epochs 1 --batch-size 32 || return 1
  grep -E "^device|--amp|--tf32|--channels-last" "$OUT/runs-defaults.log"
  on_gpu || return 0
  grep -q "bfloat16 autocast, channels-last, TF32 on" "$OUT/runs-defaults.log"
}

# Killed anywhere, it ends with the same bits.
check_bits_kill() {
  python3 scripts/kill_anywhere.py --train "$TRAIN" --trials "$(pick 4 1)" -- --data-dir "$(made_data 28 400)" \
    --device "$DEVICE" --deterministic --model small_cnn --epochs "$(pick 12 4)" --batch-size 16 --save-every 5u \
    --report-every 3u --model-ema --num-workers 2 --threads 1 --no-amp | tail -3
  return "${PIPESTATUS[0]}"
}

same_bits() {  # name, options of one, "--", options more of the other
  local name=$1 one=() more=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do one+=("$1"); shift; done
  shift
  more=("$@")
  run_of "$name-1" "${one[@]}" || return 1
  run_of "$name-2" "${one[@]}" ${more[@]+"${more[@]}"} || return 1
  echo "$(weights_of "$name-1") $(weights_of "$name-2")"
  [ "$(weights_of "$name-1")" = "$(weights_of "$name-2")" ]
}
r18() {
  echo --data-dir "$(made_data 64 256)" --model resnet18 --img-size 64 --epochs 1 --max-updates "$(pick 8 2)" \
    --batch-size "$(pick 32 8)" --threads 1 --num-workers 2
}
check_bits_again() { same_bits again $(r18) --deterministic --model-ema --; }
check_bits_recompute() { same_bits recompute $(r18) --deterministic --no-amp -- --grad-checkpointing; }
float16_or_skip() {
  on_gpu || "$TRAIN" --device cpu --fp16 --data-dir "$(made_data 28 400)" --dry-run > /dev/null 2>&1 ||
    { echo "this LibTorch computes no float16 on a CPU"; exit 77; }
}
# Small on a CPU: where LibTorch has float16 convolutions for it, they may be 250 times slower than in bfloat16.
float16_net() {
  echo --data-dir "$(made_data 28 400)" --model small_cnn --fp16 --batch-size 16
  on_gpu || echo --width 8 --img-size 12
}
check_bits_fp16() {
  float16_or_skip
  if on_gpu; then set -- $(r18); else set -- $(float16_net) --epochs 1 --max-updates 8; fi
  same_bits fp16 "$@" --deterministic --fp16 --model-ema --
}
# Reported, not required.
check_bits_not_asked_for() { same_bits loose $(r18) -- || echo "differ, which is allowed without --deterministic"; }

# A scale that is far too high is skipped down from, and the network still learns.
check_fp16_scale() {
  float16_or_skip
  run_of scale $(float16_net) --loss-scale 1e12,50 --max-updates 200 --epochs 100 --report-every 10u || return 1
  figure scale "$OUT/runs/scale/metrics.jsonl"
}

# A run that skips every update ends, with 80.
check_fp16_skips() {
  float16_or_skip
  run_of skips $(float16_net) --loss-scale 1e30 --max-skipped 5 --epochs 100 --report-every 1u
  local code=$?
  [ $code = 80 ]
}

# Pixels that stay on the device: the bits of the loader's run, and images/s of both.
check_feed_resident() {
  local feed options=(--data-dir "$(made_data 28 "$(pick 20000 800)")" --model small_cnn --epochs "$(pick 4 2)" --batch-size "$(pick 128 16)"
    --deterministic --threads 1 --num-workers 2)
  for feed in loader resident; do
    run_of "feed-$feed" "${options[@]}" --feed $feed || return 1
    echo "$feed $(weights_of "feed-$feed")$(grep -oE " [0-9,]+ images/s" "$OUT/runs-feed-$feed.log" | tail -1)"
  done
  [ "$(weights_of feed-loader)" = "$(weights_of feed-resident)" ]
}

# Replayed updates: the bits of launched ones, and images/s of both. Dropout and a short last batch come along.
check_graphs() {
  local mode other options=(--data-dir "$(made_data 28 2050)" --model small_cnn --width 8 --drop-rate 0.2 --epochs "$(pick 4 1)"
    --batch-size 32 --deterministic --threads 1 --num-workers 2 --model-ema)
  on_gpu && other=on || other=auto  # which is off on a CPU
  for mode in off $other; do
    run_of "graphs-$mode" "${options[@]}" --graphs $mode || return 1
    echo "$mode $(weights_of "graphs-$mode")$(grep -oE " [0-9,]+ images/s" "$OUT/runs-graphs-$mode.log" | tail -1)"
  done
  [ "$(weights_of graphs-off)" = "$(weights_of "graphs-$other")" ] || return 1
  only_a_gpu
  for mode in off on; do
    "$TRAIN" bench step --device "$DEVICE" --model small_cnn --img-size 28 --batch-size 32 --graphs $mode --json \
      > "$OUT/graphs.json" 2> "$OUT/graphs.log" || { tail -1 "$OUT/graphs.log"; return 1; }
    figure step "$OUT/graphs.json" "small_cnn --graphs $mode"
  done
}

# Images/s of updates alone, against PyTorch's own loop where its Python is installed.
check_step_speed() {
  local worst=0
  for model in $(pick "resnet18 resnet50 vit_s_16" small_cnn); do
    for precision in "--no-amp --no-tf32" "--no-amp --tf32" "--bf16" "--fp16"; do
      [[ $precision == *tf32 || $precision == *fp16 ]] && ! on_gpu && continue
      for layout in --channels-last --no-channels-last; do
        "$TRAIN" bench step --device "$DEVICE" --model "$model" --img-size "$(pick 224 28)" \
          --batch-size "$(pick 256 16)" $precision $layout --json > "$OUT/step.json" 2> "$OUT/step.log" ||
          { echo "$model $precision $layout: $(tail -1 "$OUT/step.log")"; worst=1; continue; }
        figure step "$OUT/step.json" "$model $precision $layout"
      done
    done
  done
  return $worst
}
check_step_against_pytorch() {
  only_a_gpu
  python3 -c "import torch, torchvision" 2> /dev/null || { echo "Python has no torch and torchvision"; exit 77; }
  python3 scripts/gpu_truth_peer.py --train "$TRAIN" --device "$DEVICE" --model resnet50 --batch-size 256
}

# No update waits for the device, and a planted read is found: with train_with_hooks, which is built with the tests.
check_sync_errors() {
  [ -x "$HOOKS" ] || { echo "there is no train_with_hooks: HOOKS names it"; exit 77; }
  local options="--data-dir $(made_data 28 400) --model small_cnn --batch-size 16 --epochs 99 --max-updates 300 --threads 1 --model-ema"
  export STOKER_TEST_SYNC=error
  TRAIN=$HOOKS run_of sync_errors $options --report-every 50u --save-every 100u || return 1
  STOKER_TEST_PLANTED_READ=7 TRAIN=$HOOKS run_of planted $options > /dev/null && { echo "a planted read is not found"; return 1; }
  grep -o "update 7 .* waits for the device: .*" "$OUT/runs-planted.log" | head -1 || return 1
  on_gpu || return 0
  TRAIN=$HOOKS run_of sync_errors_fp16 $options --fp16 && echo "300 updates of each without a wait"
}
# Calls of the CUDA runtime per update: no wait, no memory taken once training is under way.
check_syncs() {
  only_a_gpu
  cc -O2 -shared -fPIC -o "$OUT/libcuda_calls.so" scripts/bench/cuda_calls.c -ldl || return 77
  CUDA_CALLS_FILE=$OUT/cuda_calls.txt LD_PRELOAD=$OUT/libcuda_calls.so run_of syncs $(r18) --epochs 100 \
    --max-updates 320 --report-every never --save-every never || return 1
  figure calls "$OUT/cuda_calls.txt" 320
}

# The predicted memory is the memory that the run uses.
check_memory() {
  local worst=0
  for row in $(pick "resnet18:512 resnet50:256 vit_b_16:128 convnext_base:64" "small_cnn:16"); do
    run_of memory --data-dir "$(made_data 28 400)" --model "${row%:*}" --img-size "$(pick 224 28)" --batch-size "${row#*:}" \
      --max-updates 3 --epochs 9 --save-every never || { worst=1; continue; }
    figure memory "$OUT/runs/memory/plan.json" "$row" "$DEVICE" || worst=1
  done
  return $worst
}
check_batch_auto() {
  run_of auto --data-dir "$(made_data 28 400)" --model "$(pick resnet50 small_cnn)" --img-size "$(pick 224 28)" \
    --batch-size auto --max-updates 2 --epochs 9 || return 1
  grep -E "batch-size" "$OUT/runs-auto.log" | head -2
}

# More than there is: micro-batches with --auto-micro-batch, 81 and a last line without.
check_out_of_memory() {
  only_a_gpu
  local options=(--data-dir "$(made_data 64 8192)" --model resnet50 --img-size 224 --batch-size 4096 --no-plan-check
    --max-updates 1 --epochs 9 --threads 4)
  run_of oom "${options[@]}"
  local code=$?
  tail -1 "$OUT/runs-oom.log"
  [ $code = 81 ] && tail -1 "$OUT/runs-oom.log" | grep -q "^train: exit=81" || return 1
  run_of micro "${options[@]}" --auto-micro-batch && grep -E "micro-batches of" "$OUT/runs-micro.log" | tail -1
}

# Decoding keeps up with the device.
check_feed() {
  local data
  data=$(made_data 64 2048)
  for workers in $(pick "1 2 4 8 15" "1 2"); do
    "$TRAIN" bench loader --data-dir "$data" --num-workers "$workers" --json 2> /dev/null > "$OUT/loader.json" || return 1
    figure step "$OUT/loader.json" "$workers workers"
  done
  "$TRAIN" bench all --device "$DEVICE" --data-dir "$data" --model "$(pick resnet50 small_cnn)" --batch-size "$(pick 256 16)" \
    --img-size "$(pick 224 28)" --json 2> "$OUT/all.log" > "$OUT/all.json" || { tail -2 "$OUT/all.log"; return 1; }
  figure feed "$OUT/all.json" "$(pick 97 0)"
}

# How long training waits for a checkpoint.
check_saving() {
  run_of saving --data-dir "$(made_data 64 256)" --model "$(pick resnet50 small_cnn)" --img-size 64 --batch-size 16 \
    --max-updates "$(pick 12 6)" --epochs 99 --save-every 2u || return 1
  figure saving "$OUT/runs/saving/metrics.jsonl"
}

check_whole_run() {
  [ -n "$DATA" ] || { echo "DATA does not name Fashion-MNIST"; exit 77; }
  run_of fashion --data-dir "$DATA" --model small_cnn --epochs "$(pick 10 1)" || return 1
  figure best "$OUT/runs/fashion/metrics.jsonl" "$(pick 92 80)"
}

# SIGTERM in the middle: 75 and a checkpoint; then the same command continues.
check_stop() {
  local options=(--data-dir "$(made_data 28 400)" --model small_cnn --epochs 3000 --batch-size 16)
  rm -rf "$OUT/runs/stop"
  "$TRAIN" --device "$DEVICE" --run-dir "$OUT/runs/stop" "${options[@]}" > "$OUT/runs-stop.log" 2>&1 &
  local pid=$! seconds=$SECONDS
  until grep -q '"report"\|"epoch"' "$OUT/runs/stop/metrics.jsonl" 2> /dev/null || ! kill -0 $pid 2> /dev/null; do sleep 0.2; done
  kill -TERM $pid
  wait $pid
  local code=$?
  tail -1 "$OUT/runs-stop.log"
  echo "$((SECONDS - seconds)) s"
  [ $code = 75 ]
}

# No context of CUDA for work on the CPU.
check_cpu_leaves_the_gpu_alone() {
  only_a_gpu
  "$TRAIN" --device cpu --run-dir "$OUT/runs/cpu" --data-dir "$(made_data 28 400)" --model small_cnn --epochs 2000 > /dev/null 2>&1 &
  local pid=$!
  sleep 8
  nvidia-smi --query-compute-apps=pid --format=csv,noheader | grep -qw $pid
  local found=$?
  kill -KILL $pid
  [ $found != 0 ] && echo "no context"
}

check_allocator() {
  only_a_gpu
  for setting in expandable_segments:False expandable_segments:True; do
    PYTORCH_CUDA_ALLOC_CONF=$setting run_of allocator $(r18) || return 1
    figure memory "$OUT/runs/allocator/plan.json" "$setting" "$DEVICE" || true
  done
}

# Name and the seconds that it may take on a GPU; a CPU has ten times as long.
CHECKS="build:900 facts:20 check:60 defaults:60 bits_again:60 bits_recompute:60 bits_fp16:60 bits_not_asked_for:60
  fp16_scale:60 fp16_skips:30 feed_resident:60 graphs:60 bits_kill:120 step_speed:150 step_against_pytorch:90 sync_errors:60 syncs:60 memory:90 batch_auto:60 out_of_memory:90 feed:90
  saving:60 whole_run:120 stop:40 cpu_leaves_the_gpu_alone:30 allocator:60"

if [ "${1:-}" = --check ]; then  # in a process of its own
  "check_$2"
  exit $?
fi

results=$OUT/gpu_truth.jsonl
: > "$results"
failed=0
for entry in $CHECKS; do
  name=${entry%:*} limit=${entry#*:}
  on_gpu || limit=$((10 * limit))
  [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $name "* ]] || continue
  begin=$(date +%s.%N)
  timeout --kill-after=5 "$limit" "$0" --check "$name" > "$OUT/$name.log" 2>&1 < /dev/null
  code=$?
  [ $code = 0 ] || [ $code = 77 ] || failed=1
  python3 scripts/gpu_truth_figures.py line "$name" $code "$begin" "$OUT/$name.log" "$DEVICE" "$SCALE" | tee -a "$results"
done
exit $failed
