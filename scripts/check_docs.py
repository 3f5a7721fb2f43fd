#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/ and every README: links lead somewhere, shown commands parse, stated defaults are the program's, pages are short
and begin with a command, and the forms in FORBIDDEN do not occur. ctest runs it as docs.*.

    check_docs.py links
    check_docs.py commands --train build/release/apps/train     # also the defaults, ten of them made wrong
    check_docs.py words [FOLDER...]                             # FOLDER: counts in sources, such as lib apps
"""
import argparse
import collections
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST_WORDS, MOST_WORDS_OF_A_PAGE = 40000, 1500
LONG_PAGES = ("docs/options.md", "docs/reference/", "docs/dev/")

# What the right column of the list of words replaces: a form, and what to write. Programs print, report, return, estimate;
# they do not say, tell, know or ask. Prose only: code, commands and output are left out.
FORBIDDEN = {
    r"\b(?:is|are|was|were|be|been) (?:said|told)\b": "is printed, is reported",
    r"\bsa(?:ys|id)\b": "prints, reports, sets",
    r"\bt(?:ells|old)\b": "reports, shows",
    r"\bknows\b|\b(?:they|checkpoints|records|programs|ranks|workers) know\b": "support, have",
    r"\bdo(?:es)? not say\b|\bthat say\b|\bthey say\b|\b-v says\b": "show, print",
    r"\baccepted without effect\b": "accepted and ignored",
    r"\bfirst screen\b": "banner",
    r"\basks? (?:about|for it|the network)": "requests, scores",
    r"\btroubles?\b": "error, problem",
    r"\bbegin of\b|\bthe begin\b": "start",
    r"\bin the place of\b": "instead of",
    r"\bso many\b": "that many, the number of",
    r"\ball the same\b": "still, anyway",
    r"\bas ever\b": "as before, unchanged",
    r"\bthe same bits as that\b|\bhas the bits of\b|\bhave the bits of\b": "is bit-identical to",
    r"\bgo(?:es)? on with the same\b|\bwent on\b": "continues",
    r"\blearned by heart\b|\blearn(?:s)? by heart\b": "memorized",
    r"\brooms?\b": "module; space, memory",
    r"\bverbs?\b": "command",
    r"\bstretch(?:es)?\b(?! of)": "segment",
    r"\bknobs?\b": "option",
    r"\bplayed figures\b": "mocked readings",
    r"\bforeseen\b": "planned, predicted",
    r"\btrained weights of\b|\bstarting from trained\b": "pretrained weights",
    r"\brest(?:s)? the (?:first|parameters)\b|\blets parameters rest\b": "freezes",
    r"\bmultispectral files of many\b|\bproducts of matrices\b|\bmatrix products?\b": "matrix multiplication",
    r"\bmade (?:data|videos|spectrograms|images)\b": "synthetic",
    r"\binsists? on\b": "forces",
    r"\bwhen you like\b|\bif you like\b(?!\s*\()": "optionally",
    r"\bwith next to no\b|\bhardly more\b": "almost no",
    r"\bnobody (?:but|else)\b": "only",
    r"\bwhat (?:is|was) not (?:said|given|known)\b": "unset options; unknown values",
    r"\bof (?:other|which) (?:trainers|programs),": "of + noun at the start of a sentence; name the subject",
    r"\bgives? itself\b|\bsees to it\b|\bhas it that\b": "ensures",
    r"\bends? with the bits\b|\bthe bits of a run\b": "is bit-identical to a run",
    r"\bsurplus\b": "unexpected",
    r"\bspoken of\b|\bspeaks of\b": "refers to",
    r"\bgo(?:es|ing|ne)? on\b|\bwent on\b": "continues",
    r"\b(?:is|are|was|were|be|been) asked for\b": "requested",
    r"\brightly\b": "correctly",
    r"\bsigns? of life\b": "heartbeat",
    r"\b(?<!std::)listeners?\b": "observer",
    r"\bin good order\b|\bin vain\b": "cleanly; without effect",
    r"\bstart(?:s)? fresh\b|\bbegin(?:s)? fresh\b": "is randomly initialised, is reset",
    r"^#+ (?-i:What) ": "a heading whose subject is What: name the subject",
    r"^ *///?<? (?-i:What|Of) ": "a comment whose subject is What or that begins with Of: name the subject",
}


def markdown_files():
    found = sorted(ROOT.glob("docs/**/*.md")) + [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    return found + sorted(ROOT.glob("lib/**/README.md")) + sorted(ROOT.glob("tests/**/README.md"))


def name_of(path):
    return str(path.relative_to(ROOT))


def fences(text):
    """Lines with their number, and whether they stand in a block of code (fenced, or indented by four)."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            yield number, line, None
        else:
            yield number, line, fenced or (line.startswith("    ") and not line.lstrip().startswith(("*", "-")))


def prose(text):
    """The text without code, links' addresses and comments, in which lines keep their numbers."""
    lines = ["" if code is not False else line for _, line, code in fences(text)]
    without = re.sub(r"`[^`]*`", lambda m: "`" + "\n" * m[0].count("\n") + "`", "\n".join(lines))
    return re.sub(r"\]\([^)]*\)", "]", without)


def anchors(text):
    found = set()
    for _, line, code in fences(text):
        if code is False and line.startswith("#"):
            title = re.sub(r"[`*]|\]\([^)]*\)|\[", "", line.lstrip("#").strip()).lower()
            found.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return found


def missing_sources(text):
    """(line, path) of files of this tree that prose names between backticks and that do not exist; NAME and * stand for any."""
    for number, line, code in fences(text):
        for path in re.findall(r"`((?:lib|apps|tests|scripts|configs|docs)/[\w\-./*]*)`", line if code is False else ""):
            pattern = path.rstrip("/").replace("NAME", "*")
            if not any(any(ROOT.glob(name)) for name in (pattern, f"{pattern}.*")):
                yield number, path


def is_installed(path):
    """Pages may link to what is installed beside them alone: CMakeLists.txt leaves docs/examples to another package."""
    docs = ROOT / "docs"
    return docs in path.parents and docs / "examples" not in (path, *path.parents)


def check_links():
    problems = []
    texts = {path.resolve(): path.read_text(encoding="utf-8") for path in markdown_files() + [ROOT / "CHANGELOG.md"]}
    for path, text in texts.items():
        lines = "\n".join("" if code is not False else line for _, line, code in fences(text))
        for match in re.finditer(r"\]\(([^)\s]+)\)", lines):
            address = match[1]
            if re.match(r"[a-z]+:", address):
                continue
            place = f"{name_of(path)}:{lines.count(chr(10), 0, match.start()) + 1}"
            file, _, anchor = address.partition("#")
            target = (path.parent / file).resolve() if file else path
            if not target.exists():
                problems.append(f"{place}: no such file: {address}")
            elif name_of(path).startswith("docs/") and not is_installed(target):
                problems.append(f"{place}: not installed beside the pages: {address}")
            elif anchor and anchor not in anchors(texts.get(target) or target.read_text(encoding="utf-8")):
                problems.append(f"{place}: no such heading: {address}")
    problems += [f"{name_of(path)}:{number}: no such file: {file}" for path, text in texts.items()
                 if path.name != "CHANGELOG.md" for number, file in missing_sources(text)]
    # Pages that sources name, and hints: users have no source tree.
    listed = [name_of(path) for folder in ("lib", "apps", "tests", "scripts", "configs")
              for path in sorted((ROOT / folder).rglob("*")) if path.is_file()]
    for name in listed:
        if name.endswith((".cpp", ".h", ".md", ".py", ".sh", ".yaml", ".txt", ".c")) and name != "scripts/check_docs.py":
            text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
            for page in re.findall(r"(?<![\w/])docs/[\w\-./]+\.md", text):
                if not (ROOT / page).exists() and page != "docs/IR.md":  # ONNX's own
                    problems.append(f"{name}: no such page: {page}")
    pages = [path for path in texts if name_of(path).startswith("docs/")]
    words = {path: len(texts[path].split()) for path in pages}
    for path in pages:
        name = name_of(path)
        if words[path] > MOST_WORDS_OF_A_PAGE and not name.startswith(LONG_PAGES):
            problems.append(f"{name}: {words[path]} words; a page has at most {MOST_WORDS_OF_A_PAGE}")
        if name != "docs/options.md" and not re.match(r"# [^\n]+\n\n(?:```|    )", texts[path]):
            problems.append(f"{name}: a page begins with its title and a command")
    if sum(words.values()) > MOST_WORDS:
        problems.append(f"docs: {sum(words.values())} words; at most {MOST_WORDS}")
    print(f"{len(texts)} pages, docs with {sum(words.values())} words")
    return problems


class Program:
    def __init__(self, train):
        self.train = train
        self.defaults = {}
        for line in self.output("list", "options").splitlines():
            match = re.match(r"--([\w-]+) .*\[([^\]]*)\]$", line)
            if match:
                self.defaults[match[1]] = match[2]
        self.flags = {"docs-check"}
        listed = self.output("--help").partition("Other commands")[2].partition("\n\n")[0]
        self.commands = [(name,) for name in re.findall(r"^  ([a-z]+) ", listed, re.M)]
        for command in list(self.commands):  # "Usage: train inspect replay|verify ..."
            parts = re.match(r"Usage: train \w+ ((?:\w+\|)+\w+)", self.output(*command, "--help"))
            self.commands += [(*command, part) for part in (parts[1].split("|") if parts else [])]
        for words in [()] + self.commands:
            text = re.sub(r"\n {30,}", " ", self.output(*words, "--help" if words else "--help-all"))
            for match in re.finditer(r"^ +(?:-\w, )*--(?:\[no-\])?([\w-]+)([^\n]*)", text, re.M):
                self.flags.add(match[1])
                default = re.search(r"\(default: ([^()]+)\)", match[2])
                if default:
                    self.defaults.setdefault(match[1], default[1])
            for alias in re.findall(r"Also ((?:--?[\w-]+(?:, | and )?)+)", text):
                self.flags.update(word.strip(" -") for word in re.split(r", | and ", alias))

    def output(self, *words):
        return subprocess.run([self.train, *words], capture_output=True, text=True, check=False, cwd=ROOT).stdout

    def problems_of(self, words, is_whole):
        """A flag that does not exist makes the program list every mistake and stop before it does anything."""
        mark = "--docs-check"
        if {"-h", "--help", "--help-all", "-V", "--version"} & set(words):
            run = subprocess.run([self.train, *words], capture_output=True, text=True, check=False, cwd=ROOT)
            return [] if run.returncode == 0 else run.stderr.splitlines()[:1]
        words = ["true" if before == "--on-end" else word for before, word in zip([""] + words, words)]  # it would be run
        at = next((i for i, word in enumerate(words) if word == "--"), len(words))
        run = subprocess.run([self.train, *words[:at], mark, *words[at:]], capture_output=True, text=True, check=False,
                             cwd=ROOT, stdin=subprocess.DEVNULL, timeout=60)
        lines = [line.strip() for line in run.stderr.splitlines()]
        lines = [re.sub(r"^error: ", "", line) for line in lines
                 if not re.match(r"hint:|train: exit=|error: \d+ problems", line) and line and mark + ": unknown" not in line]
        if run.returncode != 64:
            lines.append(f"exit code {run.returncode} in place of 64")
        left_out = r"cannot read .*: No such file|cannot be opened|takes the place of" + ("" if is_whole else r"|^missing |is not accepted|no value given|is missing")
        return [line for line in lines if not re.search(left_out, line)]


LAUNCHERS = ("exec", "torchrun", "mpirun", "srun", "until", "do", "taskset", "if", "ExecStart=")


def commands_of(text):
    """(number, words, is_whole) of each start of train: in blocks, and between backticks."""
    block, pending, begin = [], "", 0
    for number, line, code in list(fences(text)) + [(0, "", None)]:
        if code:
            block.append((number, line.strip()))
            continue
        has_prompts = any(re.match(r"\S*\$ ", line) for _, line in block)
        for at, line in block:
            if has_prompts and not pending and not re.match(r"\S*\$ ", line):
                continue
            line = re.sub(r"^\S*\$ ", "", line)
            begin = begin if pending else at
            pending += line.rstrip("\\") + " "
            if not line.endswith("\\"):
                if "# wrong" not in pending:
                    yield from ((begin, words, True) for words in starts(pending))
                pending = ""
        block, pending = [], ""
    plain = "\n".join("" if code is not False else line for _, line, code in fences(text))
    for match in re.finditer(r"`(train [^`]+)`", plain):
        number = plain.count("\n", 0, match.start()) + 1
        if match[1] != "train loss":  # a line of the output
            inline = re.sub(r"\[[^\]]*\]|\\\|.*", "", match[1].replace("\n", " "))
            yield from ((number, words, False) for words in starts(inline))


def starts(command):
    """The words behind each train that is run: the first word of a command, or behind what starts others."""
    try:
        lexer = shlex.shlex(command.replace("ExecStart=", "ExecStart= "), posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, "#"
        tokens = list(lexer)
    except ValueError:
        return
    first, words = "", None
    for token in tokens + [";"]:
        if re.fullmatch(r"[;&|<>()]+", token):
            if words is not None:
                yield words[:-1] if token.startswith(">") and words[-1:] == ["2"] else words
            first, words = "", None
        elif words is not None:
            if token not in ("...", "…"):
                words.append("1" if token.startswith("$") else token)
        elif (token == "train" or token.endswith("/apps/train")) and "=" not in token and (not first or first in LAUNCHERS):
            words = []
        else:
            first = first or token


def agree(stated, actual):
    stated, actual = stated.strip(" `,.;").lower(), actual.strip().lower()
    same = {"on": "true", "off": "false", "no": "false", "an epoch": "1e"}
    if stated == actual or (actual in ("true", "false") and same.get(stated) == actual):
        return True
    if stated in ("none", "off", "empty") and actual in ("none", "", "off", "0"):
        return True
    try:
        return float(stated.replace(",", "") if re.fullmatch(r"[\d,]+", stated) else stated) == float(actual)
    except ValueError:
        return stated == actual.split(",")[0]


FLAG = r"`(?:-\w`/`|-\w, )?--(?:no-)?([\w-]+)((?: [^`]*)?)`"
DEFAULTS = [
    (re.compile(FLAG + r",? \(?(?:the )?default(?::| is)? `?([^\s)`;,]+)"), "stated"),
    (re.compile(FLAG + r" \((\d[\d.,]*|on|off)[);,]"), "stated"),
    (re.compile(r"\| " + FLAG + r" \| [^|]*?\((?:the )?default(?::| is)? `?([^\s)`;,]+)"), "stated"),  # in the next cell of a row
    (re.compile(FLAG + r"(?: \(default\)|, the default\b)"), "value"),
    (re.compile(FLAG + r" (?:\w+ )?defaults to `?([^\s)`;,.]+)"), "stated"),
    (re.compile(FLAG + r" (?:\(|(?:\w+ )?is )`?([^\s)`;,]+)`?,? by default"), "stated"),
]


def missing_in_reference(program):
    """What the program has, and the page that lists it does not: commands, data layouts, networks (by family)."""
    def family(name):
        return re.split(r"[\d_]", name)[0]

    layouts = json.loads(program.output("list", "options", "--format", "schema"))["properties"]["dataset"]["enum"]
    networks = program.output("list", "models").split()
    wanted = [("docs/reference/commands.md", "command", [(c[-1], f"`train {c[0]}" if len(c) == 1 else f"`{c[-1]}`|train {' '.join(c)}`")
                                                       for c in program.commands]),
              ("docs/reference/data-formats.md", "layout", [(name, rf"\b{name}\b") for name in layouts if name != "auto"]),
              ("docs/reference/models.md", "network", [(name, f"`{family(name)}") for name in networks]),
              ("scripts/python/stoker.py", "network", [(name, f'"{family(name)}') for name in networks])]
    return [f"{page}: the {kind} {name} is not there" for page, kind, names in wanted
            for text in [(ROOT / page).read_text(encoding="utf-8")] for name, pattern in names if not re.search(pattern, text)]


def stated_defaults(program, name, plain):
    """Begin and end in `plain`, a page without its blocks, of each default that it states; problems of them."""
    found, problems, flat = [], [], plain.replace("\n", " ")
    for pattern, kind in DEFAULTS:
        for match in pattern.finditer(flat):
            flag = match[1]
            place = f"{name}:{plain.count(chr(10), 0, match.start()) + 1}"
            if flag not in program.defaults:
                problems.append(f"{place}: --{flag} has no default that is known")
                continue
            group = 3 if kind == "stated" else 2
            value = match[group].strip()
            found.append(match.span(group))
            if not agree(value, program.defaults[flag]):
                problems.append(f"{place}: --{flag}: the page has {value}, the program {program.defaults[flag]}")
    return found, problems


def unnoticed_defaults(program, stated):
    """Proves the check: ten of the stated defaults, spread over all pages, are made wrong, and each must be found."""
    problems = []
    for name, plain, begin, end in stated[::max(1, len(stated) // 10)][:10]:
        wrong = plain[:begin] + (" 4711" if plain[begin] == " " else "4711") + plain[end:]
        if not any("4711" in line for line in stated_defaults(program, name, wrong)[1]):
            problems.append(f"{name}: a wrong default in place of '{plain[begin:end].strip()}' is not found")
    return problems + ([] if len(stated) >= 10 else [f"only {len(stated)} stated defaults are found in all pages"])


def check_commands(train):
    program, problems, count, stated = Program(train), [], 0, []
    for path in markdown_files() + [ROOT / "docs/options.md"]:
        name, text = name_of(path), path.read_text(encoding="utf-8")
        if name == "docs/options.md" or name.startswith(("lib/", "tests/")):
            continue
        for number, words, is_whole in commands_of(text):
            count += 1
            problems += [f"{name}:{number}: train {' '.join(words)}: {line}" for line in program.problems_of(words, is_whole)]
        plain = "\n".join("" if code is not False else line for _, line, code in fences(text))
        found, wrong = stated_defaults(program, name, plain)
        stated += [(name, plain, *place) for place in found]
        problems += wrong
        if name not in ("docs/how-to/coming-from.md", "CHANGELOG.md"):
            for match in re.finditer(r"`--(?:no-)?([a-z][\w-]+)", plain):
                if match[1] not in program.flags and match[1] not in OTHERS:
                    problems.append(f"{name}:{plain.count(chr(10), 0, match.start()) + 1}: no option is called --{match[1]}")
    problems += missing_in_reference(program) + unnoticed_defaults(program, stated)
    print(f"{count} commands, {len(stated)} stated defaults")
    return problems


# Flags of other programs that docs name.
OTHERS = {"cpus-per-task", "signal", "requeue", "prefix", "allow-run-as-root", "gtest_filter", "nproc_per_node", "no_python",
          "target", "preset", "images", "work", "tiles", "amp-dtype", "cuda"}


def word_counts(texts):
    counts = collections.Counter()
    places = []
    for name, text in texts:
        for pattern in FORBIDDEN:
            for match in re.finditer(pattern, text, re.I | re.M):
                counts[pattern] += 1
                places.append((name, text.count("\n", 0, match.start()) + 1, match[0], FORBIDDEN[pattern]))
    return counts, places


def plain_source(path):
    """Without the keys of files and the names of options, which stay."""
    return re.sub(r"""(["'])(?:knob|stretches|says)\1""", "KEY", path.read_text(encoding="utf-8", errors="replace"))


def check_words(folders):
    """Docs and sources must have none."""
    sources = []
    for folder in folders:
        files = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".c", ".cpp", ".h", ".py", ".sh")]
        counts, found = word_counts((name_of(path), plain_source(path)) for path in files if path.name != "check_docs.py")
        sources += found
        print(f"{folder}: {sum(counts.values())} in {len(files)} files: " +
              ", ".join(f"{pattern} {count}" for pattern, count in counts.most_common()))
    pages = [path for path in [*markdown_files(), ROOT / "CHANGELOG.md"] if path.exists() and name_of(path) != "docs/options.md"]
    counts, places = word_counts((name_of(path), prose(path.read_text(encoding="utf-8"))) for path in pages)
    print(f"docs and READMEs: {sum(counts.values())} in {len(pages)} pages, {len(FORBIDDEN)} forms")
    return [f"{name}:{line}: \"{found}\": {plain}" for name, line, found, plain in sources + places]


def main():
    global ROOT
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["links", "commands", "words"])
    parser.add_argument("folders", nargs="*", help="words: folders of sources")
    parser.add_argument("--train", help="commands: the program")
    parser.add_argument("--root", type=pathlib.Path, help="another source tree")
    options = parser.parse_args()
    if options.root:
        ROOT = options.root.resolve()
    if options.what == "commands":
        if not options.train:
            parser.error("commands needs --train")
        problems = check_commands(os.path.abspath(options.train))
    else:
        problems = check_links() if options.what == "links" else check_words(options.folders)
    for problem in problems:
        print(problem)
    print(f"{len(problems)} problems" if problems else "no problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
