#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_package.sh FOLDER: what the .deb files in FOLDER (scripts/package.sh made them) do on this Debian, which should be a
# fresh one: they install with what they need, train, predict and export; manual page and completion are there; the
# examples build against the library and predict as `train predict` does; removing the packages leaves nothing. Root only:
# it installs and removes packages.
set -eu
export PYTHONDONTWRITEBYTECODE=1  # the source tree may be called stoker, too
packages=$(cd "$1" && pwd)
scripts=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

say() { echo "check_package: $*"; }
die() { say "FAILED: $*"; exit 1; }
# Files outside of what packages and programs write while they work. Those that are not named after the program are found by
# the packages' own lists.
files() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /root -o -path /home -o -path /run \) -prune -o -print | grep -i stoker | sort; }

files > before
say "installing on Debian $(cat /etc/debian_version)"
apt-get install -y -qq --no-install-recommends "$packages"/stoker_*.deb > apt.log 2>&1 || { tail -5 apt.log; die "apt-get install"; }
if command -v python3 > /dev/null; then say "python3 was here before or came with the libraries"; else say "the program needs no Python"; fi
apt-get install -y -qq --no-install-recommends "$packages"/libstoker*.deb cmake make gcc g++ python3 man-db > apt.log 2>&1 \
  || { tail -5 apt.log; die "apt-get install of the library"; }

dpkg -L stoker libstoker0 libstoker-dev | sort -u > paths

test "$(command -v train)" = /usr/bin/train || die "train is not on the path"
say "$(train --version)"
test -s /usr/share/man/man1/train.1 -o -s /usr/share/man/man1/train.1.gz || die "no manual page"
MANPAGER=cat man train > man.txt 2> man.err && grep -q -e --epochs man.txt || die "man train: $(cat man.err)"
say "man train: $(wc -l < man.txt) lines"
# shellcheck disable=SC2016
completed=$(bash -c '
  . /usr/share/bash-completion/completions/train
  how=$(complete -p train) && how=${how#*-F } && how=${how%% *}
  COMP_WORDS=(train --epo) COMP_CWORD=1 COMP_LINE="train --epo" COMP_POINT=11
  "$how" train --epo train && echo "${COMPREPLY[*]}"')
case $completed in *--epochs*) say "bash completes --epo to $completed" ;; *) die "bash completes --epo to '$completed'" ;; esac
for file in /usr/share/zsh/vendor-completions/_train /usr/share/fish/vendor_completions.d/train.fish /usr/share/stoker/options.schema.json; do
  test -s $file || die "no $file"
done

PYTHONPATH=$scripts python3 -c '
import pathlib, made_images
made_images.write_images(pathlib.Path("data/train"), 60, 16, 1)
made_images.write_images(pathlib.Path("data/val"), 30, 16, 2)'
train --data-dir data --model small_cnn --img-size 16 --epochs 3 --batch-size 10 --run-dir run --quiet > train.log 2>&1 \
  || { cat train.log; die "training"; }
tail -n 1 train.log
train export run --format onnx --check --output exported || die "export"
train predict run data/val/class0 data/val/class1 data/val/class2 > predicted.csv 2> predict.log || { cat predict.log; die "predict"; }
say "$(($(wc -l < predicted.csv) - 1)) images predicted"

cmake -S /usr/share/doc/libstoker-dev/examples -B examples > cmake.log 2>&1 && cmake --build examples > cmake.log 2>&1 \
  || { cat cmake.log; die "the examples do not build"; }
images=$(tail -n +2 predicted.csv | cut -d, -f1)
for program in examples/classify_c examples/classify_cpp "python3 /usr/share/doc/libstoker-dev/examples/python/classify.py"; do
  # shellcheck disable=SC2086  # words of a command, and paths without blanks
  $program run $images > classified || die "$program"
  python3 - "$program" <<'PYTHON' || die "they differ"
import sys
predicted = [line.rstrip("\n").split(",")[:3] for line in open("predicted.csv")][1:]
classified = [line.split() for line in open("classified")]
assert len(classified) == len(predicted) > 0, (len(classified), len(predicted))
worst = 0
for (path, name, probability), (of_library, its_name, its_probability) in zip(predicted, classified):
    assert (path, name) == (of_library, its_name), (path, name, of_library, its_name)
    worst = max(worst, abs(float(probability) - float(its_probability)))
assert worst <= 2e-6, worst
print(f"check_package: {sys.argv[1]}: {len(classified)} images, the classes of train predict, probabilities differ by at most {worst:.1e}")
PYTHON
done

apt-get purge -y -qq stoker libstoker0 libstoker-dev > apt.log 2>&1 || { tail -5 apt.log; die "apt-get purge"; }
files > after
if ! cmp -s before after; then
  diff before after || true
  die "files stayed"
fi
while read -r path; do
  if [ -L "$path" ] || [ -f "$path" ]; then
    echo "$path"
  elif [ -d "$path" ] && ! dpkg-query -S "$path" > /dev/null 2>&1; then  # a folder of nobody
    echo "$path/"
  fi
done < paths > left
test ! -s left || die "stayed: $(cat left)"
say "removed, nothing is left of $(wc -l < paths) paths"
