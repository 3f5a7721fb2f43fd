// SPDX-License-Identifier: Apache-2.0
// The flags of the command line that are no options: those of several verbs, of eval and of predict. Verbs with many
// flags of their own have a file each.
#include <algorithm>

#include "config/read/flag_integer.h"
#include "config/read/verbs.h"

namespace stoker::config {
namespace {

const std::vector<std::string> kEveryVerb = {
    "",   "eval",  "predict", "bench",  "pack", "check", "plan",   "preview",    "report", "audit",  "import",
    "ls", "watch", "replay",  "verify", "diff", "blame", "export", "completion", "models", "presets"};
const std::vector<std::string> kEveryVerbThatComputes = {"",      "eval", "predict", "bench", "pack",
                                                         "check", "plan", "preview", "audit"};
const std::vector<std::string> kEveryVerbWithNetwork = {"",       "eval",   "predict", "bench", "check", "plan",
                                                        "replay", "verify", "diff",    "blame", "audit", "export"};
const std::vector<std::string> kInference = {"eval", "predict"};
const std::vector<std::string> kInferenceAndExport = {"eval", "predict", "export"};

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
       "Check options, data, some of its files and model, and exit without training.",
       [](CommandLine& line, const std::string&) { line.dry_run = true; }},
      {"all-files",
       {},
       "",
       {},
       {"", "check"},
       "With --dry-run, and in check: read and decode every file of the data, not 500 of each split.",
       [](CommandLine& line, const std::string&) { line.all_files = true; }},
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
      {"trust-model",
       {},
       "",
       {},
       kEveryVerbWithNetwork,
       "Run the code in the TorchScript file that --model, or the run, names: it can do all that you can. Only the "
       "command line can say so, no configuration and no run.",
       [](CommandLine& line, const std::string&) { line.trust_model = true; }},
      {"on-end",
       {},
       "COMMAND",
       {},
       {""},
       "Command of the shell that is run when the run ends, however: STOKER_EXIT_CODE, STOKER_REASON, STOKER_RUN_DIR, "
       "STOKER_BEST, STOKER_METRIC, STOKER_UPDATES and STOKER_CHECKPOINT say how.",
       [](CommandLine& line, const std::string& text) { line.on_end = text; }},
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
      {"help-man", {}, "", {}, {""}, "", [](CommandLine& line, const std::string&) { line.document = "man"; }},
      {"help-schema", {}, "", {}, {""}, "", [](CommandLine& line, const std::string&) { line.document = "schema"; }},
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
       kInferenceAndExport,
       "Checkpoint of the run directory to use (default: best).",
       [](CommandLine& line, const std::string& text) { line.which = text; }},
      {"top-k",
       {"topk"},
       "N",
       {},
       {"predict"},
       "Classes that are named for each image, the most probable first (default: 1).",
       [](CommandLine& line, const std::string& text) {
         line.top_k = flag_integer("--top-k", text, 1, 1'000'000, "train predict --help lists every flag");
       }},
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
       "One JSON object per line and image in the place of CSV; also where the output is called .json or .jsonl.",
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
       [](CommandLine& line, const std::string& text) {
         line.resamples = flag_integer("--resamples", text, 0, 1'000'000, "train eval --help lists every flag");
       }},
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

const std::vector<CommandFlag>& command_flags() {
  static const std::vector<CommandFlag> all = [] {
    std::vector<CommandFlag> flags = make_inference_flags();
    for (CommandFlag& flag : make_pack_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_import_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_export_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_audit_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_replay_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_plan_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_bench_flags()) flags.push_back(std::move(flag));
    for (CommandFlag& flag : make_common_flags()) flags.push_back(std::move(flag));
    return flags;
  }();
  return all;
}

}  // namespace stoker::config
