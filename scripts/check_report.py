#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Opens report.html in Chromium, 390 and 1,200 pixels wide, light and dark: nothing is wider than the screen, letters have one
size, each picture has a text, what scrolls can be reached by keyboard, letters stand out from what is behind them.

    check_report.py --train build/release/apps/train [--pictures FOLDER] [RUN...]

Without runs it makes some up, and takes the stored run of an older program. Exit code 77 without Chromium.
"""
import argparse
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
LETTERS = 15  # pixels
MEASURE = r"""
const page = document.getElementById("page").contentWindow, doc = page.document, wrong = [];
const all = (what) => [...doc.querySelectorAll(what)];
const shown = (e) => e.getBoundingClientRect().width > 0;
if (doc.documentElement.scrollWidth > page.innerWidth) wrong.push("the page is " + doc.documentElement.scrollWidth + " wide");
for (const e of all("svg.chart").filter(shown)) {
  const size = LETTERS * e.getBoundingClientRect().width / e.viewBox.baseVal.width;
  if (Math.abs(size - LETTERS) > 0.2) wrong.push("letters of a chart: " + size);
  if (!e.getAttribute("aria-label")) wrong.push("a chart without text");
  const box = e.parentElement.getBoundingClientRect();
  if (e.getBoundingClientRect().right > box.right) wrong.push("a chart is wider than its card");
}
for (const e of all("img")) if (!e.alt) wrong.push("a picture without text");
for (const e of all(".scroll").filter(shown)) {
  if (e.tabIndex !== 0 || !e.getAttribute("aria-label")) wrong.push("no keyboard reaches a table");
}
const light = (c) => c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const parts = (text) => text.match(/[\d.]+/g).map(Number);
const behind = (e) => {  // colours one upon the other, down to the page
  let colour = [255, 255, 255];
  const chain = [];
  for (let at = e; at; at = at.parentElement) chain.unshift(parts(page.getComputedStyle(at).backgroundColor));
  for (const c of chain) { const a = c.length > 3 ? c[3] : 1; colour = colour.map((v, i) => v * (1 - a) + c[i] * a); }
  return colour;
};
for (const e of all("body *").filter((e) => shown(e) && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()))) {
  const style = page.getComputedStyle(e), is_svg = e.namespaceURI.includes("svg");
  if (is_svg && e.tagName !== "text") continue;
  if (!/^H[12]$/.test(e.tagName) && style.fontSize !== LETTERS + "px") wrong.push(e.tagName + ": letters of " + style.fontSize);
  const a = light(parts(is_svg ? style.fill : style.color)), b = light(behind(e));
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) wrong.push(e.tagName + " " + e.className + " '" + e.textContent.slice(0, 20) + "': contrast " + contrast.toFixed(2));
}
const text = doc.body.innerText;
if (/\bn\/a\b|\bnan\b/.test(text)) wrong.push("n/a");
document.body.dataset.height = doc.documentElement.scrollHeight;
document.body.dataset.wrong = JSON.stringify([...new Set(wrong)]);
"""


def browser(chromium, arguments, page, folder):
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--hide-scrollbars",
               f"--user-data-dir={folder}/profile", *arguments, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def check(chromium, report, width, dark, pictures):
    with tempfile.TemporaryDirectory() as folder:
        wrapper = pathlib.Path(folder, "wrapper.html")
        frame = '<body style="margin:0"><iframe id="page" src="{}" style="border:0;width:{}px;height:{}px" onload="measure()"></iframe>'
        script = f"<script>function measure() {{ const LETTERS = {LETTERS}; {MEASURE} }}</script>"
        wrapper.write_text("<!doctype html>" + script + frame.format(report.as_uri(), width, 900))
        scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
        out = browser(chromium, [scheme, "--window-size=1300,1000", "--virtual-time-budget=3000", "--dump-dom"], wrapper, folder)
        found = re.search(r'data-wrong="([^"]*)"', out)
        wrong = json.loads(html.unescape(found[1])) if found else ["the page was not measured"]
        if pictures and found:
            height = min(12000, int(re.search(r'data-height="(\d+)"', out)[1]))
            wrapper.write_text("<!doctype html><script>function measure() {}</script>" + frame.format(report.as_uri(), width, height))
            name = f"{report.stem}-{width}-{'dark' if dark else 'light'}.png"
            browser(chromium, [scheme, f"--window-size={max(500, width)},{height}", "--virtual-time-budget=3000",
                               f"--screenshot={pictures / name}"], wrapper, folder)
        return wrong


def write_run(run, lr, task):
    """A run of three epochs with everything that a report can show."""
    metric = {"multiclass": "top1", "binary": "accuracy", "regression": "mae"}[task]
    eval_folder = run / "eval"
    eval_folder.mkdir(parents=True)
    (run / "config.yaml").write_text(f"optim:\n  lr: {lr}   # --lr\n  name: sgd   # default\ntrain:\n  epochs: 3   # --epochs\n"
                                     f"  eval-metric: {metric}   # default\ndata:\n  data-dir: /a/long/path/without/any/blank/{'x' * 60}   # flag\n")
    rows = [f"{e},{2 / e},{1.8 / e + lr},{60 + 10 * e + lr},{lr},{10 * e},1,30,2,900,0.1" for e in (1, 2, 3)]
    (run / "summary.csv").write_text(f"epoch,train_loss,eval_loss,eval_{metric},lr,updates,best,train_seconds,eval_seconds,"
                                     "images_per_second,data_wait_share\n" + "\n".join(rows) + "\n")
    events = [{"event": "start", "updates": 0, "updates_per_epoch": 10, "time": "2026-01-02T03:04:05Z"}]
    diagnosis = {"verdict": "input-bound", "evidence": ["waits for data 47%"], "advice": "--num-workers 8", "gain_percent": 30}
    for update in range(1, 31):
        events.append({"event": "report", "updates": update, "train_loss": 3 / update, "elapsed_seconds": update, "lr": lr,
                       "images_per_second": 900, "data_wait_share": 0.1, "resources": {"cpu_percent": 99.9, "resident_bytes": 1e9},
                       "loader": {"read_seconds": 3, "decode_seconds": 10}, "diagnosis": diagnosis})
    spread = {"mean_seconds": 0.1, "p95_seconds": 0.2, "max_seconds": 0.3}
    events.append({"event": "epoch", "updates": 30, "times": {"updates": 10, "update": spread, "parts": {"forward": spread}, "sample": {}}})
    events.append({"event": "finish", "reason": "epochs-done"})
    (run / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    shown = [{"name": f"val/cat/{'long' * 9}-{i}.jpg", "truth": "cat", "predicted": "dog 97%", "wrong": i % 2 == 0, "jpeg": "/9j/"}
             for i in range(12)]
    (run / "worst.json").write_text(json.dumps({"samples": shown, "ordinary": shown}))
    (run / "plan.json").write_text(json.dumps({"observed": {"host_bytes": 2e9}, "predicted": {
        "host": {"bytes": 1.9e9, "lines": [{"name": "batch buffers", "bytes": 1e8}]}, "device": None}}))
    steps = [i / 100 for i in range(101)]
    curve = {"label": "all labels", "recall": steps, "precision": [1 - s / 2 for s in steps], "threshold": steps,
             "f1": [s * (1 - s) * 4 for s in steps]}
    is_number = task == "regression"
    (eval_folder / "curves.json").write_text(json.dumps({
        "threshold": 0.5, "labels": [curve] if task == "binary" else [],
        "targets": [{"target": "yaw", "true": [s * 90 for s in steps], "predicted": [s * 80 + 3 for s in steps]}] if is_number else []}))
    bins = [{"answers": 10, "confidence": s, "right": s * 0.9, "right_low": s * 0.8, "right_high": s} for s in (0.1, 0.5, 0.9)]
    (eval_folder / "certainty.json").write_text(json.dumps({
        "images": 200, "level": 0.95, "metrics": [{"name": metric, "value": 70.0, "low": 65.0, "high": 75.0}], "thresholds": [],
        "calibration": None if is_number else {"ece": 0.05, "chance_ece": 0.04, "bins": bins}, "against": None}))
    if not is_number:
        names = [f"class-{i}" for i in range(12)]
        (eval_folder / "confusion.csv").write_text("true\\predicted," + ",".join(names) + "\n" + "".join(
            f"{name}," + ",".join(str(90 if name == other else 3) for other in names) + "\n" for name in names))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--pictures", type=pathlib.Path, help="folder for a picture of each page")
    parser.add_argument("runs", nargs="*", help="one page about all of them")
    options = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        print("skipped: no chromium here; apt-get install chromium")
        return 77
    if options.pictures:
        options.pictures = options.pictures.resolve()
        options.pictures.mkdir(parents=True, exist_ok=True)
    failed = False
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        if options.runs:
            pages = {"report": options.runs}
        else:
            for task in ("multiclass", "binary", "regression"):
                write_run(folder / task, 0.1, task)
            for i in range(9):
                write_run(folder / f"sweep/with-a-long-name-for-its-options-{i}", 0.01 * 2 ** i, "multiclass")
            shutil.copytree(ROOT / "tests/stored_run/run", folder / "stored")
            pages = {name: [str(folder / name)] for name in ("multiclass", "binary", "regression", "sweep", "stored")}
        for name, runs in pages.items():
            report = folder / f"{name}.html"
            subprocess.run([os.path.abspath(options.train), "runs", "--html", *runs, "-o", str(report)], check=True, stdout=subprocess.DEVNULL)
            for width in (390, 1200):
                for dark in (False, True):
                    for wrong in check(chromium, report, width, dark, options.pictures):
                        failed = True
                        print(f"{name}, {width} pixels, {'dark' if dark else 'light'}: {wrong}")
    print("failed" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
