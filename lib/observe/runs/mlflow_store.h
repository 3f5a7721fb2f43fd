// SPDX-License-Identifier: Apache-2.0
// Runs as MLflow keeps them in a folder, for `mlflow ui --backend-store-uri FOLDER`: its file store, as
// mlflow/store/tracking/file_store.py of MLflow 1.x to 3.x reads it.
#pragma once

#include <string>

namespace stoker::observe {

/// Writes the run at `run_dir` into the store at `store`, made where it is not there, as a run of an experiment with
/// the name of the folder that the run lies in. Written again it replaces itself: the run's number follows from its
/// directory and its first start. Figures of metrics.jsonl become metrics over updates, options parameters; the
/// artifacts are the run directory. Returns whether the run has ended. Throws as read_run_record(), and Error{io}.
bool write_mlflow_run(const std::string& run_dir, const std::string& store);

}  // namespace stoker::observe
