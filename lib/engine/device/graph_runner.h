// SPDX-License-Identifier: Apache-2.0
// Work for a device that is recorded once, as a graph, and then done again with one launch. graph_cuda.cpp has it for
// CUDA; elsewhere there are no graphs.
#pragma once

#include <torch/types.h>

#include <functional>
#include <memory>
#include <string>

namespace stoker::engine {

/// Recorded operations, on the tensors that they were recorded with: they read what lies in these when replay() is
/// called, and write to the same memory each time. Numbers that the host gave to an operation are part of the record.
/// What is drawn at random is drawn anew, as if the host had asked for it.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  /// Behind all work of the calling thread's current stream; returns at once.
  virtual void replay() = 0;
};

/// Of one device; one thread.
class GraphRunner {
 public:
  virtual ~GraphRunner() = default;
  /// Does `work` without recording it, on the stream that record() records: libraries create there what they need once.
  /// Ordered as if it were work of the current stream.
  virtual void warm_up(const std::function<void()>& work) = 0;
  /// Calls `work` and records what it gives to the device; nothing of it is done. Memory that it allocates belongs to
  /// the record, also behind its tensors' life. The same work was warmed up before. Throws what `work` throws, and
  /// c10::Error where an operation cannot be recorded; then all is as before, but memory that LibTorch keeps of it.
  virtual std::unique_ptr<RecordedWork> record(const std::function<void()>& work) = 0;
};

/// Why there are no graphs on `device`, in a few words; empty where there are.
std::string graph_obstacle(torch::Device device);
/// null where there is an obstacle.
std::unique_ptr<GraphRunner> make_graph_runner(torch::Device device);

}  // namespace stoker::engine
