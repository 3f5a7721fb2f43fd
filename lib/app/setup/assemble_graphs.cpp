// SPDX-License-Identifier: Apache-2.0
// --graphs: whether the updates of a run can be recorded, and by whom.
#include "app/setup/assemble.h"
#include "core/error.h"
#include "core/log.h"
#include "model/script/network_library.h"

namespace stoker::app {

std::string graphs_obstacle(const config::ResolvedOptions& options, const std::string& of_device) {
  if (!of_device.empty()) return of_device;
  if (options.train.replicas > 1) return "an update has several replicas";
  if (options.model.grad_checkpointing) return "--grad-checkpointing asks the host for random states while it computes";
  if (model::is_network_file(options.model.model)) return "a network in a file may decide on the host what it computes";
  return "";
}

std::unique_ptr<engine::GraphRunner> graph_runner_for(const config::ResolvedOptions& options, torch::Device device) {
  if (options.device.graphs == config::Graphs::off) return nullptr;
  const std::string obstacle = graphs_obstacle(options, engine::graph_obstacle(device));
  if (obstacle.empty()) return engine::make_graph_runner(device);
  if (options.device.graphs == config::Graphs::on) {
    throw core::Error(core::ErrorKind::config, "graphs on is not possible: " + obstacle,
                      "leave --graphs out, or say --graphs off");
  }
  core::log_debug("graphs are off: {}", obstacle);
  return nullptr;
}

std::string graphs_text(const config::ResolvedOptions& options, torch::Device device) {
  if (options.device.graphs == config::Graphs::off) return "";
  if (!graphs_obstacle(options, engine::graph_obstacle(device)).empty()) return "";
  return options.device.graphs ? ", graphs" : ", graphs where they help";
}

}  // namespace stoker::app
