// SPDX-License-Identifier: Apache-2.0
#include "proof/worker.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <torch/utils.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "core/hash.h"
#include "core/system/machine.h"
#include "core/text/json.h"
#include "engine/device/device.h"
#include "engine/device/precision.h"
#include "model/freeze.h"
#include "model/low_rank.h"
#include "model/model.h"
#include "model/script/network_library.h"
#include "proof/operation/capture.h"
#include "proof/operation/operation.h"
#include "proof/operation/replay.h"
#include "proof/remedy/remedy.h"
#include "proof/request.h"
#include "proof/rules/rules.h"
#include "proof/trial.h"

namespace stoker::proof {
namespace {

using core::Json;

std::vector<std::string> names_of(const std::vector<Alternative>& ways) {
  std::vector<std::string> names;
  for (const Alternative way : ways) names.push_back(name_of(way));
  return names;
}

/// The remedy to try; without one, what every start applies before its proof.
Remedy remedy_of(const Json& order) {
  return order.contains("remedy") ? order.at("remedy").get<Remedy>() : known_remedy();
}

class Worker {
 public:
  Worker(const Json& order, std::FILE* out) : order_(order), request_(order.at("request").get<Request>()), out_(out) {}

  int run() {
    if (request_.trusts_network_file) model::trust_network_files();
    apply(remedy_of(order_));
    device_ = engine::open_device(request_.device);
    torch::manual_seed(1);
    network_ = model::make_model(request_.network);
    if (request_.low_rank > 0) model::add_low_rank(*network_, request_.low_rank, request_.network.name);
    if (!request_.freeze.empty()) model::freeze(*network_, request_.freeze);
    network_->to(device_);
    for (const model::ModelSpec& spec : request_.teachers) {
      teachers_.push_back(model::make_model(spec));
      teachers_.back()->to(device_);
      teachers_.back()->eval();
    }
    require_memory_for_passes();
    // One number of threads after the other: it decides how a library shares the work out.
    std::set<int64_t> thread_counts;
    for (const Pass& pass : request_.passes) thread_counts.insert(pass.threads);
    std::map<int64_t, Operations> operations;
    for (const int64_t threads : thread_counts) operations[threads] = operations_with(threads);
    size_t count = 0;
    for (const auto& [threads, some] : operations) count += some.by_key().size();
    write({{"operations", count}});
    apply(remedy_of(order_));
    for (const auto& [threads, some] : operations) try_all(some, threads);
    write({{"done", true}, {"peak_bytes", core::read_process_memory().peak_resident_bytes}});
    return core::kExitOk;
  }

 private:
  void write(const Json& line) {
    std::fputs((core::json_line(line) + "\n").c_str(), out_);
    std::fflush(out_);
  }

  /// Passes over 3 images must not drive other work out of memory.
  void require_memory_for_passes() const {
    constexpr double kImages = 3, kHeldOverInput = 60;  // activations and their gradients, as usual networks have them
    double bytes = kImages * kHeldOverInput * sizeof(float);
    for (const int64_t size : request_.input) bytes *= static_cast<double>(size);
    const int64_t available = core::read_machine_facts().ram_available_bytes;
    if (available == 0 || device_.is_cuda() || bytes < static_cast<double>(available)) return;
    throw core::Error(core::ErrorKind::out_of_memory, "passes over a few such large images do not fit");
  }

  void configure(int64_t threads) {
    engine::BackendSettings settings;
    settings.threads = threads;
    settings.tf32 = request_.tf32;
    settings.deterministic = request_.deterministic;
    settings.benchmark = false;  // of cuDNN: a search would take longer than the proof
    engine::configure_backends(settings);
  }

  Operations operations_with(int64_t threads) {
    configure(threads);
    Operations operations;
    if (order_.at("without_onednn").get<bool>()) at::globalContext().setUserEnabledMkldnn(false);
    for (const Pass& pass : request_.passes) {
      if (pass.threads != threads) continue;
      if (pass.channels_last && !is_channels_last_) {
        model::to_channels_last(*network_);
        for (const auto& teacher : teachers_) model::to_channels_last(*teacher);
      }
      is_channels_last_ = is_channels_last_ || pass.channels_last;
      operations.add(
          pass.images, [&](int64_t images) { compute(pass, images); },
          [&](const Operation& operation) {
            write({{"pass", text_of(operation)}});
          });
    }
    at::globalContext().setUserEnabledMkldnn(true);
    return operations;
  }

  torch::Tensor noise(const Pass& pass, int64_t images) const {
    std::vector<int64_t> frames = {images};
    for (size_t i = 0; i + 3 < request_.input.size(); ++i) frames[0] *= request_.input[i];
    frames.insert(frames.end(), request_.input.end() - 3, request_.input.end());
    const auto format = pass.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    torch::Tensor x = at::empty(frames, torch::TensorOptions().device(device_).memory_format(format)).uniform_(-1, 1);
    if (request_.input.size() == 3) return x;
    std::vector<int64_t> clips(request_.input.begin(), request_.input.end() - 3);
    clips.insert(clips.begin(), images);
    return x.unflatten(0, clips);
  }

  void compute(const Pass& pass, int64_t images) {
    engine::Precision precision{device_, !pass.autocast.empty(),
                                pass.autocast == "float16" ? at::kHalf : at::kBFloat16};
    network_->train(pass.trains);
    if (!pass.trains) {
      const torch::NoGradGuard no_gradients;
      const engine::AutocastScope autocast(precision);
      network_->forward(noise(pass, images));
      return;
    }
    torch::Tensor outputs;
    {
      const engine::AutocastScope autocast(precision);
      const torch::Tensor input = noise(pass, images);
      for (const auto& teacher : teachers_) {
        const torch::NoGradGuard no_gradients;
        teacher->forward(input);
      }
      outputs = network_->forward(input);
    }
    outputs.backward(torch::ones_like(outputs));
    for (torch::Tensor& parameter : network_->parameters()) parameter.mutable_grad().reset();
  }

  /// A network that is far too large must not drive other work out of memory: the plan reports that it does not fit.
  static bool has_memory_for(const Operation& operation) {
    constexpr int64_t kCopies = 8;  // arguments, two results, and both as float32
    const int64_t available = core::read_machine_facts().ram_available_bytes;
    return available == 0 || argument_bytes(operation) < available / kCopies;
  }

  void try_all(const Operations& operations, int64_t threads) {
    configure(threads);
    const auto skipped = order_.at("skip").get<std::set<std::string>>();
    const auto only = order_.at("only").get<std::set<std::string>>();
    const auto untried = order_.at("untried_kinds").get<std::set<std::string>>();
    ReplaySettings settings;
    settings.same_bits = device_.is_cpu() || request_.deterministic;
    settings.on_step = [this] { write({{"alive", true}}); };
    settings.compares_all = order_.at("compares_all").get<bool>();
    for (const auto& [key, counted] : operations.by_key()) {
      const std::string id = core::format("{} on {}", key, core::counted(threads, "thread"));
      if (skipped.count(id) > 0 || (!only.empty() && only.count(id) == 0)) continue;
      write({{"begin", id},
             {"family", family_of(counted.operation)},
             {"text", text_of(counted.operation) + ", " + core::counted(threads, "thread")},
             {"ways", names_of(alternatives_for(counted.operation))},
             {"library", library_of(counted.operation)},
             {"calls", counted.calls}});
      settings.seed = core::hash64(id);
      if (untried.count(kind_of(family_of(counted.operation), library_of(counted.operation))) > 0) {
        write({{"end", id}, {"right", false}, {"fault", kUntried}, {"ratio", 0.0}, {"seconds", 0.0}});
        continue;
      }
      if (!has_memory_for(counted.operation)) {
        write({{"refused", id}, {"why", "memory is too small to try it"}});
        continue;
      }
      Finding found;
      try {
        found = replayed(counted.operation, settings);
      } catch (const c10::Error& error) {
        if (engine::is_out_of_memory(error)) throw;
        write({{"refused", id}, {"why", engine::short_text_of(error)}});
        continue;
      }
      write({{"end", id},
             {"right", found.is_right},
             {"fault", found.fault},
             {"ratio", std::min(found.worst_ratio, 1e30)},
             {"seconds", found.seconds}});
    }
  }

  const Json order_;
  const Request request_;
  std::FILE* const out_;
  torch::Device device_ = torch::kCPU;
  std::shared_ptr<model::ImageModel> network_;
  std::vector<std::shared_ptr<model::ImageModel>> teachers_;
  bool is_channels_last_ = false;
};

}  // namespace

int work(const std::string& order, std::FILE* out) {
  constexpr int kMostNesting = 16;
  try {
    return Worker(core::parse_json(order, "the order", kMostNesting), out).run();
  } catch (const std::exception& error) {
    const Json line = {{"error", engine::short_text_of(error)}, {"out_of_memory", engine::is_out_of_memory(error)}};
    std::fputs((core::json_line(line) + "\n").c_str(), out);
    std::fflush(out);
    return core::kExitOk + 1;
  }
}

}  // namespace stoker::proof
