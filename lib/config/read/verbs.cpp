// SPDX-License-Identifier: Apache-2.0
#include "config/read/verbs.h"

#include <algorithm>

#include "config/table/parse_value.h"
#include "core/error.h"
#include "core/format.h"

namespace stoker::config {
namespace {

const std::vector<std::string> kEveryVerb = {"",        "eval",   "predict", "bench",  "pack",   "check", "plan",
                                             "preview", "report", "audit",   "import", "ls",     "watch", "replay",
                                             "verify",  "diff",   "blame",   "models", "presets"};
const std::vector<std::string> kEveryVerbThatComputes = {"",      "eval", "predict", "bench", "pack",
                                                         "check", "plan", "preview", "audit"};
const std::vector<std::string> kInference = {"eval", "predict"};

Positional checkpoint_positional() {
  return {"RUN_OR_CHECKPOINT", "Run directory, or one checkpoint directory of it.",
          [](CommandLine& line, const std::string& text) { line.checkpoint = text; }};
}

int64_t count_of(const std::string& flag, const std::string& text, int64_t least, int64_t most) {
  int64_t count = 0;
  if (read_integer(text, least, most, count).empty()) return count;
  throw core::Error(core::ErrorKind::usage,
                    core::format("{}: {} is not accepted; {}", flag, shown(text), range_text(least, most)),
                    "train predict --help lists every flag");
}

int64_t resamples_of(const std::string& text) {
  constexpr int64_t kMost = 1'000'000;
  int64_t resamples = 0;
  if (read_integer(text, 0, kMost, resamples).empty()) return resamples;
  throw core::Error(core::ErrorKind::usage,
                    core::format("--resamples: {} is not accepted; {}", shown(text), range_text(0, kMost)),
                    "train eval --help lists every flag");
}

std::vector<Verb> make_verbs() {
  const Positional inputs = {"INPUT",
                             "Image files, folders that are searched for images, patterns as 'a/*.jpg', shards or HDF5 "
                             "files; @FILE: a list of paths, one per line; -: such a list from standard input.",
                             [](CommandLine& line, const std::string& text) { line.inputs.push_back(text); },
                             /*is_optional=*/false, /*repeats=*/true};
  const Positional labelled = {"DATA",
                               "Labelled data instead of the run's own: a folder of classes or of splits, a CSV or "
                               "HDF5 file.",
                               [](CommandLine& line, const std::string& text) { line.input = text; },
                               /*is_optional=*/true};
  const Positional what = {"WHAT",
                           "loader: batches from files; step: optimizer updates on one batch; all: both, and training; "
                           "ablate: training without each of the things that make it fast, in turn.",
                           [](CommandLine& line, const std::string& text) { line.bench = text; }};
  const Positional dataset = {"DATASET", "Data set to pack; with --verify or --index: a folder of shards.",
                              [](CommandLine& line, const std::string& text) { line.input = text; }};
  const Positional shards = {"OUT", "Folder for the shards.",
                             [](CommandLine& line, const std::string& text) { line.output = text; },
                             /*is_optional=*/true};
  Positional listed = {"DIR", "Folder that holds runs, or a run (default: runs).",
                       [](CommandLine& line, const std::string& text) { line.run_dirs.push_back(text); },
                       /*is_optional=*/true, /*repeats=*/true};
  const Positional other_run = {"OTHER", "What to compare it with: a run, or a checkpoint.",
                                [](CommandLine& line, const std::string& text) { line.against = text; }};
  const Positional audited = {"DATASET", "Folder that holds the data set, as --data-dir.",
                              [](CommandLine& line, const std::string& text) { line.input = text; },
                              /*is_optional=*/true};
  const Positional run_dirs = {"RUN_DIR", "Run directories, of runs that are under way as well.",
                               [](CommandLine& line, const std::string& text) { line.run_dirs.push_back(text); },
                               /*is_optional=*/false, /*repeats=*/true};
  const Positional weights = {"FILE", "Weights: safetensors, an index of such files, or a state dict of torch.save().",
                              [](CommandLine& line, const std::string& text) { line.input = text; }};
  return {
      {"", "train [options]", "Trains a network; the same command resumes an interrupted run.", {}},
      {"eval",
       "train eval RUN_OR_CHECKPOINT [DATA] [options]",
       "Measures a trained network on a labelled split; options that are not given are those of the run.",
       {checkpoint_positional(), labelled}},
      {"predict",
       "train predict RUN_OR_CHECKPOINT INPUT... [options]",
       "Classifies images without labels; options that are not given are those of the run.",
       {checkpoint_positional(), inputs}},
      {"bench",
       "train bench WHAT [options]",
       "Measures how fast a part of training is by itself: images per second.",
       {what}},
      {"pack",
       "train pack DATASET OUT [options]",
       "Packs a data set into tar shards that are read in any order; the same command goes on after a stop.",
       {dataset, shards}},
      {"check",
       "train check [options]",
       "Measures this machine and says what to set; with --config also how long an epoch takes.",
       {}},
      {"plan",
       "train plan [options]",
       "Says what a run will take, on one device or several: memory, time, disk; 81 when it cannot fit.",
       {}},
      {"preview",
       "train preview [options] [--output FILE]",
       "Draws what the network will see: augmented images, and the same ones over several epochs.",
       {}},
      {"import",
       "train import FILE [--model NAME] [--output OUT.safetensors]",
       "Lists the weights in a file of another program, and writes them as safetensors.",
       {weights}},
      {"report",
       "train report RUN_DIR... [--output FILE]",
       "Writes one HTML page about a run, or about several side by side.",
       {run_dirs}},
      {"models", "train models", "Lists the networks for --model.", {}},
      {"presets", "train presets", "Lists the presets for --preset.", {}},
      {"audit",
       "train audit DATASET [options]",
       "Says what is wrong with a data set: an image in two splits, contradicting labels, bad files.",
       {audited}},
      {"ls", "train ls [DIR...]", "Lists runs below a folder: state, epoch, best, speed, age.", {listed}},
      {"watch",
       "train watch RUN_DIR... [--once]",
       "Draws where runs stand and their curves in the terminal, until they end.",
       {run_dirs}},
      {"replay",
       "train replay RUN --update N [options]",
       "Computes a past update again: its images, labels, losses and gradients, without having logged them.",
       {checkpoint_positional()}},
      {"verify",
       "train verify RUN [--stretches K]",
       "Computes stretches of a run again: do its checkpoints follow from its options and data?",
       {checkpoint_positional()}},
      {"diff",
       "train diff A B",
       "Says what differs between two runs, or two checkpoints, and the first update at which the runs part.",
       {checkpoint_positional(), other_run}},
      {"blame",
       "train blame RUN",
       "Says where a divergence or a spike began: the update, the samples, the layer.",
       {checkpoint_positional()}},
  };
}

std::vector<CommandFlag> make_common_flags() {
  return {
      {"config",
       {"c", "cfg"},
       "FILE",
       {},
       kEveryVerbThatComputes,
       "YAML file with options; may be given several times, later ones win.",
       [](CommandLine& line, const std::string& text) { line.config_files.push_back(text); }},
      {"preset",
       {},
       "NAME",
       {},
       kEveryVerbThatComputes,
       "Options that are built in; config files and flags win over them.",
       [](CommandLine& line, const std::string& text) { line.preset = text; }},
      {"print-config",
       {"dump-config"},
       "",
       {},
       kEveryVerbThatComputes,
       "Print every option with its value and where it came from, and exit.",
       [](CommandLine& line, const std::string&) { line.print_config = true; }},
      {"dry-run",
       {},
       "",
       {},
       {""},
       "Check options, data and model, and exit without training.",
       [](CommandLine& line, const std::string&) { line.dry_run = true; }},
      {"verbose",
       {"v"},
       "",
       {},
       kEveryVerb,
       "Say more: what was chosen and why, where time and memory go; as --log-level debug.",
       [](CommandLine& line, const std::string&) { line.verbose = true; }},
      {"fresh",
       {},
       "",
       {},
       {""},
       "Start over: an older run in the run directory is set aside as DIR.old-1, DIR.old-2, ...",
       [](CommandLine& line, const std::string&) { line.fresh = true; }},
      {"help",
       {"h"},
       "",
       {},
       kEveryVerb,
       "Print this and exit.",
       [](CommandLine& line, const std::string&) { line.help = true; }},
      {"help-all",
       {},
       "",
       {},
       {""},
       "Print every option and exit.",
       [](CommandLine& line, const std::string&) { line.help = line.help_all = true; }},
      {"version",
       {"V"},
       "",
       {},
       kEveryVerb,
       "Print the version and exit.",
       [](CommandLine& line, const std::string&) { line.version = true; }},
      {"help-markdown", {}, "", {}, {""}, "", [](CommandLine& line, const std::string&) { line.help_markdown = true; }},
  };
}

std::vector<CommandFlag> make_bench_flags() {
  return {
      {"json",
       {},
       "",
       {},
       {"eval", "bench", "check", "plan", "audit", "ls", "replay", "verify", "diff", "blame"},
       "Print the figures as one JSON object on standard output, and nothing else there.",
       [](CommandLine& line, const std::string&) { line.json = true; }},
  };
}

std::vector<CommandFlag> make_inference_flags() {
  return {
      {"which",
       {},
       "",
       {"best", "last"},
       kInference,
       "Checkpoint of the run directory to use (default: best).",
       [](CommandLine& line, const std::string& text) { line.which = text; }},
      {"top-k",
       {"topk"},
       "N",
       {},
       {"predict"},
       "Classes that are named for each image, the most probable first (default: 1).",
       [](CommandLine& line, const std::string& text) { line.top_k = count_of("--top-k", text, 1, 1'000'000); }},
      {"probabilities",
       {},
       "",
       {},
       {"predict"},
       "The probability of every class.",
       [](CommandLine& line, const std::string&) { line.probabilities = true; }},
      {"json",
       {},
       "",
       {},
       {"predict"},
       "One JSON object per line and image in the place of CSV.",
       [](CommandLine& line, const std::string&) { line.json = true; }},
      {"split",
       {},
       "NAME",
       {},
       {"eval"},
       "Split to evaluate on (default: the run's validation split).",
       [](CommandLine& line, const std::string& text) { line.split = text; }},
      {"output",
       {"o"},
       "FOLDER",
       {},
       {"eval"},
       "Folder for CSV files of results per image and per class.",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
      {"output",
       {"o"},
       "FILE",
       {},
       {"predict"},
       "CSV file for the predictions; - (the default) is standard output.",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
      {"output",
       {"o"},
       "FILE",
       {},
       {"report"},
       "The page (default: report.html in the run directory, or here when there are several); - is standard output.",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
      {"output",
       {"o"},
       "FILE",
       {},
       {"check"},
       "Where the findings go; - (the default) is standard output.",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
      {"output",
       {"o"},
       "FILE",
       {},
       {"preview"},
       "The picture, a PNG (default: preview.png); - is standard output.",
       [](CommandLine& line, const std::string& text) { line.output = text; }},
      {"against",
       {},
       "RUN_OR_CHECKPOINT",
       {},
       {"eval"},
       "Evaluate this one on the same images, too, and say which is better and how surely.",
       [](CommandLine& line, const std::string& text) { line.against = text; }},
      {"resamples",
       {},
       "N",
       {},
       {"eval"},
       "Resamples of the images from which intervals are told (default: 2000); 0: no intervals.",
       [](CommandLine& line, const std::string& text) { line.resamples = resamples_of(text); }},
      {"logits",
       {},
       "",
       {},
       kInference,
       "Write the network's raw scores as well.",
       [](CommandLine& line, const std::string&) { line.logits = true; }},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = make_verbs();
  return all;
}

const std::vector<CommandFlag>& command_flags() {
  static const std::vector<CommandFlag> all = [] {
    std::vector<CommandFlag> flags = make_inference_flags();
    for (CommandFlag& flag : make_pack_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_import_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_audit_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_replay_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_plan_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_bench_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_common_flags()) flags.push_back(std::move(flag));
    return flags;
  }();
  return all;
}

const Verb* find_verb(const std::string& name) {
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace stoker::config
