#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From nothing: makes videos whose classes differ only over time, trains the deepfake detector on clips of them and its
# backbone on single frames, and prints the best ROC-AUC of both. Usage: s1_flicker.sh [work folder] [train program]
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d)}
train=${2:-$here/build/release/apps/train}

/usr/bin/python3 "$here/scripts/make_data/clips.py" "$work/data" --train 800 --val 200

# Options of both runs: a small backbone on 32 pixels in place of an EfficientNet-B0 on 224, on one CPU core.
common=(--config "$here/configs/s1_deepfake.yaml" --data-dir "$work/data" --img-size 32 --width 8
        --train-crop none --color-jitter none --batch-size 16 --lr 0.003 --warmup-epochs 0
        --no-amp --no-channels-last --threads 1 --num-workers 1 --no-report --resume none)
"$train" "${common[@]}" --run-dir "$work/clips" --backbone small_cnn --lstm-channels 16 --epochs 12
"$train" "${common[@]}" --run-dir "$work/frames" --model small_cnn --clip-frames 1 --epochs 12

best() { /usr/bin/python3 - "$1/summary.csv" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
print(max(float(row["eval_roc_auc"]) for row in rows))
PYTHON
}
echo "best ROC-AUC on clips of 8 frames: $(best "$work/clips")"
echo "best ROC-AUC on single frames:     $(best "$work/frames")"
