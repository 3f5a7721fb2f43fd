// SPDX-License-Identifier: Apache-2.0
// The files of a run directory beside metrics.jsonl, read into a RunRecord whose path is set. A file that is missing
// leaves its part of the record empty.
#pragma once

#include <string>

#include "observe/report/run_record.h"

namespace stoker::observe {

/// Appends (x, y) to the curve of that name.
void add_point(Curves& curves, const std::string& name, double x, double y);

/// summary.csv. Rows that a crash has torn are left out. Throws Error{io}.
void read_summary(RunRecord& record, double updates_per_epoch);
/// config.yaml. What cannot be read as YAML is left out.
void read_run_options(RunRecord& record);
/// eval/confusion.csv, else confusion.csv. Throws Error{data} where it is not a square table of counts.
void read_confusion(RunRecord& record);
/// eval/certainty.json. A file of another form is ignored.
void read_certainty(RunRecord& record);
/// eval/curves.json. A file of another form draws nothing.
void read_eval_curves(RunRecord& record);
/// worst.json. A file of another form shows no picture.
void read_pictures(RunRecord& record);
/// Rows of cells of sweep.csv and halving.csv in a folder of runs, their headers first; at most 1,000 of each. Empty:
/// there is none, or it cannot be read.
struct SweepTables {
  std::vector<std::vector<std::string>> sweep, halving;
  std::vector<std::string> left_out = {};  ///< as RunRecord::left_out
};
SweepTables read_sweep_tables(const std::string& folder);
/// plan.json. A plan of another form is not a plan.
void read_memory_plan(RunRecord& record);

}  // namespace stoker::observe
