// SPDX-License-Identifier: Apache-2.0
// The files of a run, read back as values: curves, rows, options. Parses the files of
// docs/reference/run-directory.md without interpreting metrics; never writes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/text/json.h"

namespace stoker::observe {

/// y over x; equally many of both, all finite.
struct Curve {
  std::vector<double> x, y;
};

/// Curves by name. Names of summary.csv are its columns; names of reports are their fields, with those of an object
/// behind a dot ("resources.cpu_percent").
using Curves = std::map<std::string, Curve>;

struct ConfusionTable {
  std::vector<std::string> class_names;
  std::vector<std::vector<int64_t>> counts;  ///< [true class][predicted class]; empty: the run was not evaluated
};

/// The bottleneck of a run, as it was logged.
struct DiagnosisRow {
  double epochs = 0;  ///< done by then
  std::string verdict, evidence, advice;
  double gain_percent = 0;
};

/// Seconds per update or sample, of the last epoch.
struct TimeRow {
  std::string name;
  double mean_seconds = 0, p95_seconds = 0, max_seconds = 0;
};

/// A picture of the best evaluation, with what was predicted.
struct PictureRow {
  std::string name, truth, predicted;
  std::string jpeg;       ///< base64, checked to be nothing else
  std::string heat;       ///< likewise: the picture under the evidence for the prediction; empty: there is none
  bool is_wrong = false;  ///< another class is predicted; false as well where numbers are learned
};

/// Highest use of one memory, as the plan had it and as it was; of the last process of the run.
struct MemoryForecast {
  std::string where;  ///< "host", "cuda:0"
  double predicted_bytes = 0;
  double observed_bytes = 0;                          ///< 0: not known, the run is under way or was killed
  std::vector<std::pair<std::string, double>> parts;  ///< name and bytes
};

/// A figure of an evaluation with its interval; NaN: not known.
struct MetricInterval {
  std::string name;
  double value = 0, low = 0, high = 0;
};

/// Predictions of similar confidence, and how often they were right.
struct ReliabilityPoint {
  int64_t answers = 0;
  double confidence = 0, right = 0, right_low = 0, right_high = 0;  ///< 0 to 1
};

struct ThresholdRow {
  std::string label;
  double threshold = 0, f1 = 0, f1_now = 0;
};

/// One label of an evaluation at all thresholds; all in [0, 1], x ascending.
struct LabelCurve {
  std::string label;
  std::vector<double> recall, precision;  ///< precision over recall
  std::vector<double> threshold, f1;      ///< F1 over the threshold
};

/// A target of some samples, as it is and as it is predicted; at least one.
struct NumberPairs {
  std::string target;
  std::vector<double> truth, predicted;
};

/// How sure the figures of eval/certainty.json are.
struct CertaintyRecord {
  int64_t images = 0;  ///< 0: the run was not evaluated into its directory
  double level = 0;    ///< 0.95
  std::vector<MetricInterval> figures;
  double ece = 0, chance_ece = 0;             ///< 0 to 1
  std::vector<ReliabilityPoint> reliability;  ///< by rising confidence; empty where numbers are learned
  std::vector<ThresholdRow> thresholds;
  std::string against;                 ///< another checkpoint on the same images; empty: none
  std::vector<MetricInterval> better;  ///< by how much this run has more of a figure than that one
};

struct RunRecord {
  std::string path;                                  ///< as given
  std::vector<std::string> epoch_columns;            ///< header of summary.csv, in its order
  std::vector<std::vector<std::string>> epoch_rows;  ///< cells as they stand there
  Curves by_epoch;                                   ///< summary.csv over epochs done; x may be fractional
  Curves by_report;                                  ///< metrics.jsonl over epochs done
  Curves by_minute;                                  ///< the same over minutes of training
  std::vector<std::pair<std::string, std::string>>
      options;                      ///< name and value of config.yaml, in its order; lists as "[a, b]"
  std::vector<std::string> chosen;  ///< names of those that somebody set: they are not defaults and follow from nothing
  std::string state;                ///< "finished (epochs-done)", "stopped (signal:TERM)", "training"
  std::string backend;              ///< what was proven of the libraries at the last start; "": not known
  std::string started;              ///< time of the first start, UTC
  int64_t resumes = 0;
  double checkpoint_seconds = 0;                      ///< spent on saving, all processes of the run
  int64_t damaged_lines = 0;                          ///< number of lines of metrics.jsonl that were left out
  std::vector<std::string> left_out;                  ///< a line for each file with rows that cannot be read
  std::vector<MemoryForecast> memory;                 ///< plan.json; empty: the run has none
  ConfusionTable confusion;                           ///< content of eval/confusion.csv or confusion.csv
  CertaintyRecord sure;                               ///< content of eval/certainty.json
  std::vector<DiagnosisRow> diagnoses;                ///< one per change of verdict, in order; the last one last
  std::vector<TimeRow> step_times, sample_times;      ///< whole update first; empty: no epoch is over
  std::vector<PictureRow> worst, ordinary;            ///< samples in worst.json
  std::vector<LabelCurve> label_curves;               ///< curves in eval/curves.json, the most frequent labels first
  double threshold = 0;                               ///< that was used there; 0: none
  std::vector<NumberPairs> number_pairs;              ///< pairs in eval/curves.json
  std::string option(const std::string& name) const;  ///< "" when there is none
};

/// Epochs with rows: there is one for each evaluation inside an epoch, too.
int64_t epochs_in(const RunRecord& run);

/// The epoch that a run is judged by, and its result.
struct BestEpoch {
  std::string metric;  ///< that of --eval-metric, as a column of summary.csv without "eval_"
  double value = 0;
  int64_t epoch = 0;  ///< from 1
  size_t row = 0;     ///< in epoch_rows
  bool lower_is_better = false;
  double loss = 0;  ///< validation loss; infinite: not known
};
/// Nothing when no epoch was evaluated.
std::optional<BestEpoch> best_epoch(const RunRecord& run);
/// Orders runs: those of one metric together, the better first, of equal values the lower loss, those without a result
/// last.
bool is_better(const std::optional<BestEpoch>& a, const std::optional<BestEpoch>& b);
/// Names of options whose values differ between runs, apart from run-dir: those that somebody chose, or where these are
/// all equal, any.
std::vector<std::string> differing_options(const std::vector<const RunRecord*>& runs);

/// Calls `visit` for each event of metrics.jsonl, in order, until it returns false. Returns the number of lines that
/// are no events or have a field of another type: a power failure tears a line, the others still hold. Throws as
/// core::read_file().
int64_t for_each_event(const std::string& run_dir, const std::function<bool(const core::Json& event)>& visit);

/// Reads a run directory, of a run that is under way as well. Where a resumed run went through updates a second time,
/// the later reports count. Throws Error{no_input} when it is not a run directory, Error{data} when a file is not what
/// it should be.
RunRecord read_run_record(const std::string& path);

}  // namespace stoker::observe
