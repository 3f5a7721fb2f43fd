#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/terminal.svg and docs/report.svg from one real run: the screen as a terminal of 110 columns shows it, and the charts
of the run's report.html. No browser is needed. The machine should have nothing else to do.

    docs_pictures.py --train build/release/apps/train --data-dir photos --epochs 6
"""
import argparse
import html
import os
import pathlib
import pty
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, LINE, CHARACTER, MARGIN = 110, 18, 7.8, 16
CHART, ROW = 362, 312  # pixels from one chart to the next
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:g} {h:g}" width="{w:g}" height="{h:g}" role="img" aria-label="{label}">\n'


def shown(arguments):
    """What stands on a terminal after the program has ended: lines that it has drawn over are gone."""
    parent, child = pty.openpty()
    subprocess.run(["stty", "cols", str(COLUMNS), "rows", "60"], stdin=child, check=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "MKL_"))}
    process = subprocess.Popen(arguments, stdin=child, stdout=child, stderr=child, env=own)
    os.close(child)
    seen = b""
    while True:
        try:
            piece = os.read(parent, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    process.wait()
    lines = []
    for line in seen.decode().replace("\r\n", "\n").split("\n"):
        last = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", re.split(r"\r|\x1b\[J", line)[-1])
        lines.append(last)
    return lines


def wrapped(lines):
    for line in lines:
        while len(line) > COLUMNS:
            end = line.rfind(" ", 0, COLUMNS + 1)
            end = end if end > COLUMNS // 2 else COLUMNS
            yield line[:end]
            line = "    " + line[end:].lstrip()
        yield line


def terminal(command, lines):
    screen = ["$ " + command] + list(wrapped(lines))
    while screen and not screen[-1].strip():
        screen.pop()
    width, height = 2 * MARGIN + COLUMNS * CHARACTER, 2 * MARGIN + len(screen) * LINE
    out = [SVG.format(w=width, h=height, label="A training in the terminal")]
    out.append(f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#12161b"/>\n'
               '<g font-family="ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="13" fill="#e6eaee">\n')
    for number, line in enumerate(screen):
        colour = ' fill="#2cc79b"' if line.startswith("$ ") else ' fill="#56b4e9"' if "(best)" in line else ""
        out.append(f'<text x="{MARGIN}" y="{MARGIN + LINE * number + 13}" xml:space="preserve" textLength="{len(line) * CHARACTER:g}"'
                   f' lengthAdjust="spacingAndGlyphs"{colour}>{html.escape(line)}</text>\n' if line.strip() else "")
    return "".join(out) + "</g>\n</svg>\n"


STYLE = """<style>text{fill:#5c6670;font:15px system-ui,DejaVu Sans,sans-serif}.t{font-weight:600;font-size:14px;fill:#1b1f24}
.h{font-weight:600;font-size:20px;fill:#1b1f24}.grid{stroke:#d5dae0;stroke-width:.7;fill:none}.axis{stroke:#5c6670;fill:none}
.dashed path{stroke-dasharray:5 3}
""" + "".join(f".c{n} path{{fill:none;stroke:{colour};stroke-width:1.8}}.c{n} circle{{fill:{colour}}}.k{n}{{fill:{colour}}}\n" for n, colour in enumerate(
    ("#0072b2", "#d55e00", "#008a64", "#b3558b", "#c28800", "#2f8fc4"))) + "</style>\n"


def report(page, run):
    charts = re.findall(r'<figcaption>([^<]*)</figcaption>(<svg class="chart" viewBox="0 0 336 232".*?</svg>)(.*?)</figure>', page, re.S)
    charts = charts[:6]
    verdict = re.sub(r"<[^>]*>", " ", re.search(r'class="verdict">(.*?)</p>', page, re.S)[1]).split()
    text = re.sub(r" ([:,.;])", r"\1", " ".join(verdict))
    width = 1126
    height = 90 + ROW * -(-len(charts) // 3)
    out = [SVG.format(w=width, h=height, label="Charts of the report of a run"), STYLE,
           f'<rect width="{width}" height="{height}" fill="#fff"/>\n<text x="20" y="34" class="h">{html.escape(run)}</text>\n'
           f'<text x="20" y="62">What limits the run: {text[:125].rsplit(" ", 1)[0] + "..." if len(text) > 125 else text}</text>\n']
    for number, (caption, chart, rest) in enumerate(charts):
        x, y = 20 + CHART * (number % 3), 80 + ROW * (number // 3)
        names = re.findall(r'<li><svg class="key (c\d).*?</svg>(.*?)</li>', rest, re.S)
        legend = "&#160; ".join(f'<tspan class="k{kind[1]}">&#9632;</tspan> {re.sub("<[^>]*>", "", name).replace(", per ", "/")}' for kind, name in names)
        out.append(f'<rect x="{x}" y="{y}" width="352" height="{ROW - 12}" rx="8" fill="#f6f7f9"/>\n'
                   f'<text x="{x + 12}" y="{y + 22}" class="t">{caption}</text>\n' +
                   re.sub(r'class="chart"(.*?) width="\d+" height="\d+"', rf'x="{x + 8}" y="{y + 32}" width="336" height="232"\1', chart, count=1) +
                   f'\n<text x="{x + 12}" y="{y + ROW - 24}" style="font-size:{12.5 if len(names) < 3 else 10.5}px">{legend}</text>\n')
    return "".join(out) + "</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--data-dir", required=True, help="a folder called photos looks best")
    parser.add_argument("--epochs", default="6")
    options = parser.parse_args()
    data = pathlib.Path(options.data_dir).resolve()
    os.environ["PATH"] = f"{pathlib.Path(options.train).resolve().parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.symlink(data, data.name)
        words = ["--data-dir", data.name, "--val-fraction", "0.1", "--epochs", options.epochs]
        screen = terminal("train " + " ".join(words), shown(["train", *words]))
        run = f"runs/{data.name}"
        subprocess.run(["train", "runs", "--html", run], check=True)
        page = pathlib.Path(run, "report.html").read_text(encoding="utf-8")
        (ROOT / "docs/terminal.svg").write_text(screen, encoding="utf-8")
        (ROOT / "docs/report.svg").write_text(report(page, run), encoding="utf-8")


if __name__ == "__main__":
    main()
