// SPDX-License-Identifier: Apache-2.0
#include "config/read/verbs.h"

namespace stoker::config {
namespace {

Positional checkpoint_positional() {
  return {"RUN_OR_CHECKPOINT", "Run directory, or one checkpoint directory of it.",
          [](CommandLine& line, const std::string& text) { line.checkpoint = text; }};
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
  const Positional samples = {"INPUT", "Images for the test vectors, as for predict (default: made-up ones).",
                              [](CommandLine& line, const std::string& text) { line.inputs.push_back(text); },
                              /*is_optional=*/true, /*repeats=*/true};
  const Positional shell = {"SHELL", "bash, zsh or fish.",
                            [](CommandLine& line, const std::string& text) { line.document = text; }};
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
      {"export",
       "train export RUN_OR_CHECKPOINT [INPUT...] [--format NAME] [--output FILE] [--check]",
       "Writes a trained network as ONNX, TorchScript or safetensors, with test vectors beside it.",
       {checkpoint_positional(), samples}},
      {"report",
       "train report RUN_DIR... [--output FILE]",
       "Writes one HTML page about a run, about several side by side, or about all below a folder.",
       {run_dirs}},
      {"models", "train models", "Lists the networks for --model.", {}},
      {"presets", "train presets", "Lists the presets for --preset.", {}},
      {"completion", "train completion SHELL", "Prints a script that completes this command line.", {shell}},
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
       "train blame RUN [--update N]",
       "Says where a divergence or a spike began: the update, the samples, the layer.",
       {checkpoint_positional()}},
  };
}

}  // namespace

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = make_verbs();
  return all;
}

const Verb* find_verb(const std::string& name) {
  for (const Verb& verb : verbs()) {
    if (verb.name == name) return &verb;
  }
  return nullptr;
}

}  // namespace stoker::config
