// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_plan.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "data/loader/batch_ring.h"

namespace stoker::plan {
namespace {

using core::format;

std::string size_of(int64_t bytes) { return core::bytes_text(static_cast<double>(bytes)); }

int64_t ring_of(const PlanInputs& inputs) { return data::ring_slots(inputs.num_workers, inputs.prefetch_factor); }

/// Buffers of one loader: no more rows are ever written than an epoch has images. All of page-locked memory is taken at
/// once.
int64_t batch_buffer_bytes(const PlanInputs& inputs, int64_t batch_size, int64_t images) {
  if (inputs.page_locked) {
    int64_t buffer = 1;
    while (buffer < std::min(batch_size, images) * inputs.pixel_bytes) buffer *= 2;
    return ring_of(inputs) * buffer;
  }
  return std::min(ring_of(inputs) * batch_size, images) * inputs.pixel_bytes;
}

/// Images of the short batch at the end of an epoch.
int64_t last_batch(int64_t batch_size, int64_t images) {
  return images % std::max<int64_t>(1, std::min(batch_size, images));
}

int64_t bytes_at(const std::function<int64_t(int64_t)>& of_images, int64_t images) {
  return of_images && images > 0 ? of_images(images) : 0;
}

/// The size of the weights and their companions on disk, and in memory while they are read back.
int64_t saved_bytes(const PlanInputs& inputs) {
  return inputs.weight_bytes + inputs.optimizer_bytes + inputs.average_bytes;
}

/// The peak memory of training or evaluation, inputs and gradients included, beside weights and optimizer state.
int64_t working_bytes(const PlanInputs& inputs) {
  const int64_t train_batch = std::min(inputs.batch_size, inputs.train_images);
  const int64_t val_batch = std::min(inputs.val_batch_size, inputs.val_images);
  const int64_t training = bytes_at(inputs.training_bytes, train_batch);
  const int64_t evaluation = bytes_at(inputs.evaluation_bytes, val_batch);
  if (!inputs.on_cpu()) {
    const int64_t copied_ahead = 2 * std::max(train_batch, val_batch) * inputs.pixel_bytes;
    return std::max(training, evaluation) + copied_ahead;
  }
  // A feed keeps the tensor of its full batch and that of the short last one.
  const engine::BatchSizes sizes{train_batch, last_batch(inputs.batch_size, inputs.train_images), val_batch,
                                 last_batch(inputs.val_batch_size, inputs.val_images)};
  const int64_t kept = sizes.train + sizes.last_train + sizes.val + sizes.last_val;
  if (inputs.working_bytes) return inputs.working_bytes(sizes) + kept * inputs.input_bytes;
  // Each pass brings its own full input along.
  return std::max(training + (kept - sizes.train) * inputs.input_bytes,
                  evaluation + (kept - sizes.val) * inputs.input_bytes);
}

void add_line(std::vector<PlanLine>& lines, const std::string& name, int64_t bytes, const std::string& detail = "") {
  if (bytes > 0) lines.push_back({name, bytes, detail});
}

int64_t sum_of_lines(const std::vector<PlanLine>& lines) {
  int64_t sum = 0;
  for (const PlanLine& line : lines) sum += line.bytes;
  return sum;
}

/// Sums of replicas that wait for others while one is computed: as many as the digits of a binary counter. Each has
/// gradients and changes of running statistics; besides, the statistics as they were are kept, and as this replica
/// leaves them.
int64_t replica_sum_bytes(const PlanInputs& inputs) {
  if (inputs.replicas == 1) return 0;
  int64_t waiting = 0;
  for (int64_t own = 1; own < inputs.replicas / inputs.ranks; own *= 2) ++waiting;
  return waiting * (inputs.gradient_bytes + inputs.buffer_bytes) + 2 * inputs.buffer_bytes;
}

/// The sums over all ranks, and what is received of one bucket at a time.
int64_t exchange_bytes(const PlanInputs& inputs) {
  constexpr int64_t kBucket = 4 * 1024 * 1024;
  const int64_t sums = inputs.gradient_bytes + inputs.buffer_bytes;
  return inputs.ranks == 1 ? 0 : sums + std::min(sums, kBucket);
}

void add_model_lines(const PlanInputs& inputs, std::vector<PlanLine>& lines) {
  add_line(lines, "weights", inputs.weight_bytes);
  add_line(lines, "teacher", inputs.teacher_bytes, "whose outputs are learned");
  add_line(lines, "average", inputs.average_bytes, "of the weights");
  add_line(lines, "optimizer", inputs.optimizer_bytes);
  add_line(lines, "gradients", inputs.gradient_bytes);
  const int64_t working = working_bytes(inputs);
  add_line(lines, "activations", std::max<int64_t>(0, working - inputs.gradient_bytes),
           format("micro-batch of {}, evaluation of {}", std::min(inputs.batch_size, inputs.train_images),
                  std::min(inputs.val_batch_size, inputs.val_images)));
  add_line(lines, "pixels", inputs.resident_bytes, "of all samples, for --feed resident");
  const int64_t sums = replica_sum_bytes(inputs);
  add_line(lines, "replica sums", sums,
           format("{} of {} replicas, one after the other", inputs.replicas / inputs.ranks, inputs.replicas));
  add_line(lines, "exchange", exchange_bytes(inputs), format("with {} ranks: sums over them", inputs.ranks));
}

void add_host_lines(const PlanInputs& inputs, std::vector<PlanLine>& lines) {
  add_line(lines, "program", inputs.program_bytes, "and libraries, measured");
  add_line(lines, "data", inputs.data_bytes, "sample list and preloaded pixels");
  add_line(lines, "batch buffers",
           batch_buffer_bytes(inputs, inputs.batch_size, inputs.train_images) +
               batch_buffer_bytes(inputs, inputs.val_batch_size, inputs.val_images),
           format("{} batches of {} to train on, {} of {} to evaluate on", ring_of(inputs),
                  std::min(inputs.batch_size, inputs.train_images), ring_of(inputs),
                  std::min(inputs.val_batch_size, inputs.val_images)));
  add_line(lines, "cache", inputs.cache_bytes, "when full");
  add_line(lines, "results", inputs.result_bytes,
           "counts and tables of an evaluation, the confusion of classes among them");
  const int64_t readers = std::max<int64_t>(1, inputs.num_workers);
  add_line(lines, "decode scratch", 2 * readers * inputs.scratch_bytes,
           format("{} worker{} for each split", readers, readers == 1 ? "" : "s"));
}

/// Share of what is free that an advice leaves: the start that follows it may find a little less.
constexpr double kAdviceMargin = 0.05;

bool fits(const MemoryPlan& plan, const MemoryBudget& budget, double margin) {
  const auto within = [margin](int64_t needed, int64_t held, int64_t free) {
    return free <= 0 || static_cast<double>(needed - held) <= (1 - margin) * static_cast<double>(free);
  };
  return within(plan.host_bytes, budget.host_held_bytes, budget.host_free_bytes) &&
         (plan.device == "cpu" || within(plan.device_bytes, budget.device_held_bytes, budget.device_free_bytes));
}

bool fits(const PlanInputs& inputs, const MemoryBudget& budget, double margin = 0) {
  return fits(make_memory_plan(inputs), budget, margin);
}

/// With evaluation batches that are no larger.
PlanInputs with_batch(PlanInputs inputs, int64_t batch_size) {
  inputs.batch_size = batch_size;
  inputs.val_batch_size = std::min(inputs.val_batch_size, batch_size);
  return inputs;
}

/// With gradients that stay while the next batch is computed.
PlanInputs accumulating(PlanInputs inputs) {
  if (inputs.accumulation_steps * inputs.replicas > 1) return inputs;
  const int64_t more = inputs.gradient_bytes;
  if (inputs.training_bytes) {
    inputs.training_bytes = [of = inputs.training_bytes, more](int64_t images) { return of(images) + more; };
  }
  if (inputs.working_bytes) {
    inputs.working_bytes = [of = inputs.working_bytes, more](const engine::BatchSizes& sizes) {
      return of(sizes) + more;
    };
  }
  return inputs;
}

/// `other` flags, then "--batch-size 96 --val-batch-size 96".
std::string batch_flags(const std::string& other, const PlanInputs& requested, const PlanInputs& smaller) {
  const bool follows = requested.val_batch_size == requested.batch_size && !requested.val_batch_is_given;
  const bool has_other = smaller.val_batch_size < requested.val_batch_size && !follows;
  return format("{}--batch-size {}{}", other, smaller.batch_size,
                has_other ? format(" --val-batch-size {}", smaller.val_batch_size) : "");
}

/// And the way to the same update where a batch that divides it fits.
std::string batch_advice(const std::string& other, const PlanInputs& requested, const PlanInputs& smaller,
                         const MemoryBudget& budget) {
  const int64_t images = requested.batch_size * requested.accumulation_steps;
  const bool is_all = requested.replicas == 1 && requested.train_images > 0 && images >= requested.train_images;
  const std::string flags = batch_flags(other, requested, smaller);
  for (int64_t batch = smaller.batch_size; batch > 1; --batch) {
    const PlanInputs divided = with_batch(smaller, batch);
    if ((!is_all && images % batch != 0) || !fits(accumulating(divided), budget, kAdviceMargin)) continue;
    return format(
        "{}{} --accumulation-steps {}", batch == smaller.batch_size ? "" : flags + ", or for the same update ",
        batch_flags(other, requested, divided), is_all ? (requested.train_images + batch - 1) / batch : images / batch);
  }
  return flags;
}

std::string memory_line(const std::string& where, int64_t bytes, int64_t held, int64_t free,
                        const std::vector<PlanLine>& lines) {
  std::string parts;
  for (const PlanLine& line : lines) {
    parts += format("{}{} {}", parts.empty() ? "" : " + ", line.name, size_of(line.bytes));
  }
  const std::string available = free > 0 ? format(" of {}", size_of(held + free)) : "";
  return format("memory    {} {}{}: {}", where, size_of(bytes), available, parts);
}

core::Json lines_json(const std::vector<PlanLine>& lines) {
  core::Json list = core::Json::array();
  for (const PlanLine& line : lines) {
    list.push_back({{"name", line.name}, {"bytes", line.bytes}, {"detail", line.detail}});
  }
  return list;
}

core::Json bytes_or_null(int64_t bytes) { return bytes > 0 ? core::Json(bytes) : core::Json(nullptr); }

}  // namespace

MemoryPlan make_memory_plan(const PlanInputs& inputs) {
  MemoryPlan plan;
  plan.device = inputs.device;
  plan.checkpoint_bytes = saved_bytes(inputs);
  add_host_lines(inputs, plan.on_host);
  // Reading a checkpoint and training take turns. Writing one, too, but working memory is not for others.
  const int64_t read_back = inputs.resumes ? saved_bytes(inputs) + inputs.weight_bytes : 0;
  const int64_t checkpoint = std::max(inputs.copies_to_save ? 0 : inputs.largest_tensor_bytes, read_back);
  if (inputs.on_cpu()) {
    add_model_lines(inputs, plan.on_host);
    const int64_t free_meanwhile = std::max(working_bytes(inputs), inputs.gradient_bytes);
    const int64_t always = inputs.working_bytes && !inputs.copies_to_save ? inputs.largest_tensor_bytes : 0;
    add_line(plan.on_host, "checkpoint", std::max(always, checkpoint - free_meanwhile),
             "beyond what training leaves free meanwhile");
  } else {
    add_model_lines(inputs, plan.on_device);
    add_line(plan.on_host, "checkpoint", checkpoint, "a copy of the largest tensor, or of all when resuming");
  }
  if (inputs.copies_to_save) {
    add_line(plan.on_host, "checkpoint copy", saved_bytes(inputs), "for saving while training continues");
  }
  const int64_t sum = sum_of_lines(plan.on_host);
  const int64_t before = std::max(inputs.highest_so_far_bytes, inputs.proof_bytes);
  add_line(plan.on_host, "start", before - sum,
           before == inputs.proof_bytes ? "while another process proves the libraries, before training"
                                        : "was needed before training");
  plan.host_bytes = std::max(sum, before);
  plan.device_bytes = sum_of_lines(plan.on_device);
  return plan;
}

namespace {

/// "2.1 GB more than this process holds; 1.9 GB are free", with the difference where both round to the same.
std::string shortage_text(int64_t more, int64_t free, const char* where) {
  const std::string text =
      format("{} more than this process holds{}; {} are free", size_of(more), where, size_of(free));
  return size_of(more) == size_of(free) ? format("{}, {} too few", text, size_of(more - free)) : text;
}

}  // namespace

std::string shortage(const MemoryPlan& plan, const MemoryBudget& budget) {
  if (fits(plan, budget, /*margin=*/0)) return "";
  MemoryPlan host_alone = plan;
  host_alone.device = "cpu";
  if (!fits(host_alone, budget, 0)) {
    return format("the run would take {} of memory, {}", size_of(plan.host_bytes),
                  shortage_text(plan.host_bytes - budget.host_held_bytes, budget.host_free_bytes, ""));
  }
  return format("the run would take {} of memory on {}, {}", size_of(plan.device_bytes), plan.device,
                shortage_text(plan.device_bytes - budget.device_held_bytes, budget.device_free_bytes, " there"));
}

int64_t largest_batch(PlanInputs inputs, const MemoryBudget& budget, int64_t most, double margin) {
  int64_t fitting = 0, beyond = most + 1;
  while (fitting + 1 < beyond) {
    const int64_t middle = fitting + (beyond - fitting) / 2;
    (fits(with_batch(inputs, middle), budget, margin) ? fitting : beyond) = middle;
  }
  return fitting;
}

std::string largest_fitting_change(const PlanInputs& inputs, const MemoryBudget& budget) {
  PlanInputs uncached = inputs;
  uncached.cache_bytes = 0;
  if (inputs.cache_bytes > 0 && fits(uncached, budget, kAdviceMargin)) return "--cache none";
  PlanInputs alone = inputs;  // the batch stays, what surrounds it shrinks
  alone.cache_bytes = 0;
  for (alone.num_workers = inputs.num_workers / 2; alone.num_workers > 0; alone.num_workers /= 2) {
    if (!fits(alone, budget, kAdviceMargin)) continue;
    return format("{}--num-workers {}", inputs.cache_bytes > 0 ? "--cache none " : "", alone.num_workers);
  }
  if (const int64_t batch = largest_batch(inputs, budget, inputs.batch_size - 1, kAdviceMargin); batch > 0) {
    return batch_advice("", inputs, with_batch(inputs, batch), budget);
  }
  PlanInputs least = uncached;
  least.prefetch_factor = 1;
  least.num_workers = std::min<int64_t>(1, inputs.num_workers);
  const int64_t batch = largest_batch(least, budget, inputs.batch_size, kAdviceMargin);
  if (batch == 0) return "";
  const std::string fewer = format("{}--num-workers {} --prefetch-factor 1 ",
                                   inputs.cache_bytes > 0 ? "--cache none " : "", least.num_workers);
  return batch_advice(fewer, inputs, with_batch(least, batch), budget);
}

std::vector<std::string> plan_summary(const MemoryPlan& plan, const MemoryBudget& budget) {
  std::vector<std::string> lines = {
      memory_line("host", plan.host_bytes, budget.host_held_bytes, budget.host_free_bytes, plan.on_host)};
  if (!plan.on_device.empty()) {
    lines.push_back(memory_line(plan.device, plan.device_bytes, budget.device_held_bytes, budget.device_free_bytes,
                                plan.on_device));
  }
  return lines;
}

std::vector<std::string> plan_table(const MemoryPlan& plan, const MemoryBudget& budget) {
  std::vector<std::string> table;
  const auto add = [&](const std::string& where, const std::vector<PlanLine>& lines, int64_t bytes, int64_t held,
                       int64_t free) {
    if (lines.empty()) return;
    for (const PlanLine& line : lines) {
      table.push_back(format("{:<9} {:<15}{:>10}{}", where, line.name, size_of(line.bytes),
                             line.detail.empty() ? "" : "  " + line.detail));
    }
    const std::string budget_text =
        free > 0 ? format("  highest; this process holds {} now, {} are free", size_of(held), size_of(free))
                 : "  highest";
    table.push_back(format("{:<9} {:<15}{:>10}{}", where, "in all", size_of(bytes), budget_text));
  };
  add("host", plan.on_host, plan.host_bytes, budget.host_held_bytes, budget.host_free_bytes);
  add(plan.device, plan.on_device, plan.device_bytes, budget.device_held_bytes, budget.device_free_bytes);
  return table;
}

core::Json plan_json(const MemoryPlan& plan, const MemoryBudget& budget) {
  core::Json json = {{"host",
                      {{"bytes", plan.host_bytes},
                       {"held_bytes", bytes_or_null(budget.host_held_bytes)},
                       {"free_bytes", bytes_or_null(budget.host_free_bytes)},
                       {"lines", lines_json(plan.on_host)}}},
                     {"device", nullptr},
                     {"checkpoint_bytes", plan.checkpoint_bytes}};
  if (!plan.on_device.empty()) {
    json["device"] = {{"name", plan.device},
                      {"bytes", plan.device_bytes},
                      {"held_bytes", bytes_or_null(budget.device_held_bytes)},
                      {"free_bytes", bytes_or_null(budget.device_free_bytes)},
                      {"lines", lines_json(plan.on_device)}};
  }
  return json;
}

namespace {

void refuse_or_warn(const std::string& short_of, const std::string& hint, const std::string& advice, bool plan_check) {
  if (plan_check) throw core::Error(core::ErrorKind::out_of_memory, short_of, hint + advice);
  core::log_warning("continuing (--no-plan-check) although {}; {}", short_of, hint);
}

}  // namespace

int64_t most_checkpoints(const config::ResolvedRunOptions& options) {
  return std::max<int64_t>(2, options.keep_last) + (options.save_best ? 1 : 0) + 1 +
         (options.average_last > 0 ? options.average_last + 1 : 0);
}

void require_enough_memory(const PlanInputs& inputs, const MemoryBudget& budget, bool plan_check) {
  const std::string short_of = shortage(make_memory_plan(inputs), budget);
  if (short_of.empty()) return;
  const std::string flags = largest_fitting_change(inputs, budget);
  refuse_or_warn(
      short_of,
      flags.empty() ? "nothing smaller fits either: choose a smaller --model or --img-size" : "this fits: " + flags,
      "; train plan shows each part; use --no-plan-check to try anyway", plan_check);
}

void require_evaluation_memory(const std::function<PlanInputs(int64_t batch)>& plan_of, int64_t batch,
                               const MemoryBudget& budget, bool plan_check) {
  PlanInputs inputs = plan_of(batch);
  const std::string short_of = shortage(make_memory_plan(inputs), budget);
  if (short_of.empty()) return;
  // Fewer images may be computed by other means, which take more: what is advised is planned as the next start does.
  while (batch > 0) {
    batch = largest_batch(inputs, budget, batch - 1, kAdviceMargin);
    if (batch == 0) break;
    inputs = plan_of(batch);
    if (fits(inputs, budget, kAdviceMargin)) break;
  }
  refuse_or_warn(short_of,
                 batch > 0 ? core::format("this fits: --val-batch-size {}", batch)
                           : "not even one image fits: choose a smaller --img-size",
                 "; use --no-plan-check to try anyway", plan_check);
}

namespace {

using core::Error;
using core::ErrorKind;
using core::format;

// Beyond this many images at once a CPU computes no faster, and learning rates of usual recipes no longer hold.
constexpr int64_t kUsefulOnCpu = 64;
constexpr int64_t kUsefulOnDevice = 8192;
constexpr int64_t kUpdatesPerEpoch = 8;                  // an automatic batch leaves an epoch at least as many
constexpr double kCpuMargin = 0.2, kDeviceMargin = 0.1;  // of what is free: other processes, pieces between tensors

}  // namespace

config::Measured<int64_t> choose_batch(const BatchRules& rules, PlanInputs inputs, const MemoryBudget& budget) {
  const int64_t replicas = inputs.replicas;
  const int64_t total = rules.total_batch_size / replicas, images = inputs.train_images;
  int64_t most = inputs.on_cpu() ? kUsefulOnCpu : kUsefulOnDevice;
  if (total > 0) {
    most = std::min(most, total);
  } else {
    most = std::clamp<int64_t>(images / (kUpdatesPerEpoch * inputs.accumulation_steps * replicas), 1, most);
  }
  if (!rules.val_batch_is_given) inputs.val_batch_size = most;
  const double margin = inputs.on_cpu() ? kCpuMargin : kDeviceMargin;
  int64_t batch = largest_batch(inputs, budget, most, margin);
  if (batch == 0) {
    throw Error(ErrorKind::out_of_memory, "not even one image fits: " + shortage(make_memory_plan(inputs), budget),
                "choose a smaller --img-size or --model, or fewer --num-workers");
  }
  const bool is_capped = batch == most;
  if (total > 0) {
    while (total % batch != 0) --batch;
  } else {
    if (batch > 8) batch -= batch % 8;
    if (images % batch == 1 && batch > 2 && rules.keeps_any_last_batch) --batch;  // no last batch of one image
  }
  const MemoryPlan plan = make_memory_plan([&] {
    inputs.batch_size = batch;
    inputs.val_batch_size = std::min(inputs.val_batch_size, batch);
    return inputs;
  }());
  const int64_t bytes = inputs.on_cpu() ? plan.host_bytes : plan.device_bytes;
  const std::string why = !is_capped        ? format("the largest that fits with {:.0f} % to spare", 100 * margin)
                          : inputs.on_cpu() ? "a larger batch gains nothing on a CPU, or leaves few updates per epoch"
                                            : "a larger batch leaves few updates per epoch";
  return {batch, format("{}: {} in all", why, core::bytes_text(static_cast<double>(bytes)))};
}

}  // namespace stoker::plan
