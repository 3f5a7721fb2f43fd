// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/step_model.h"

#include <algorithm>

namespace stoker::observe {
namespace {

using engine::StepPart;

constexpr double kLeastCpus = 0.25;  // a fair scheduler leaves us some

}  // namespace

double StepModel::limit() const {
  const double feeding = worker_cpu + worker_blocked;
  const double cpu = (worker_cpu + network_cpu) / std::max(least_cpus, cpus - taken_cpus);
  if (workers < 1) return std::max(training + feeding, cpu);
  return std::max({training, feeding / workers, cpu});
}

double StepModel::gain_percent(const StepModel& changed) const {
  const double predicted = changed.limit() * changed.slack;
  return predicted > 0 && update > 0 ? std::max(0.0, 100 * (update / predicted - 1)) : 0;
}

StepModel step_model(const engine::StepTimings& times, const ResourceReading& resources, int64_t cpus) {
  StepModel model;
  model.update = times.update.mean_seconds;
  if (times.updates == 0 || model.update <= 0 || times.wall_seconds <= 0) return model;
  // The loader's and the kernel's figures are of the whole window, in which the last update need not be over.
  const double per_update = model.update / times.wall_seconds;
  const data::LoaderStats& loader = times.loader;
  const double read = loader.read_seconds * per_update;
  const double busy =
      read +
      (loader.decode_seconds + loader.resize_seconds + loader.augment_seconds + loader.write_seconds) * per_update;
  model.workers = loader.num_workers;
  model.cpus = static_cast<double>(std::max<int64_t>(1, cpus));
  model.taken_cpus = resources.other_cpus.value_or(0);
  const double training_cpu = times.training_cpu_seconds * per_update;
  // Only reading waits for something besides a CPU.
  model.worker_cpu = model.workers > 0 ? std::min(busy, loader.worker_cpu_seconds * per_update) : busy - read;
  model.worker_blocked = std::clamp(busy - model.worker_cpu, 0.0, read);
  model.network_cpu = std::max(0.0, (times.process_cpu_seconds - loader.worker_cpu_seconds) * per_update -
                                        (model.workers > 0 ? 0 : busy - read));
  model.least_cpus = std::max(kLeastCpus, (model.worker_cpu + model.network_cpu) / model.update);

  model.training = std::max(0.0, model.update - times.judged()[StepPart::wait].mean_seconds);
  const double computing = times.computing_seconds();
  // One thread that computes and did not get a CPU: wall time beyond its CPU time. Several threads spin,
  // which looks like work; a device computes without a CPU.
  const bool one_thread = !times.has_device && model.network_cpu < 1.2 * training_cpu;
  if (one_thread && model.workers > 0 && training_cpu > 0) model.training -= std::max(0.0, computing - training_cpu);
  const double explained = model.limit();
  model.slack = explained > 0 ? std::max(1.0, model.update / explained) : 1;
  return model;
}

}  // namespace stoker::observe
