// SPDX-License-Identifier: Apache-2.0
// `train predict`: predictions of a checkpoint for images without labels.
#include "commands/predict/predict.h"

#include <algorithm>
#include <optional>

#include "commands/eval/evaluate_together.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "train/failure/result_output.h"

namespace stoker::train {
namespace {

using core::Error;
using core::ErrorKind;
using core::format;

struct ReaderLeft {};

/// The rows of a table in the order of the samples: those that were left out stand between the others.
class Rows {
 public:
  Rows(const LoadedModel& loaded, ImageTable& table) : loaded_(loaded), table_(table) {}

  void add(const data::Batch& batch, const torch::Tensor& outputs, const data::Loader& loader) {
    if (batch.samples.back() - next_ >= batch.image_count()) {
      // Some are missing in between: a batch is cut at each of them.
      const std::vector<data::BadSample> bad = loader.bad_samples();
      for (int64_t begin = 0, end = 0; begin < batch.image_count(); begin = end) {
        add_left_out(batch.samples[static_cast<size_t>(begin)], bad);
        for (end = begin + 1; end < batch.image_count() && follows(batch, end);) ++end;
        add_whole(batch, outputs, begin, end);
      }
      return;
    }
    add_whole(batch, outputs, 0, batch.image_count());
  }
  /// Up to sample `end`.
  void add_left_out(int64_t end, const std::vector<data::BadSample>& bad) {
    const auto before = [](const data::BadSample& of, int64_t sample) { return of.sample < sample; };
    for (; next_ < end; ++next_, ++left_out_) {
      const auto found = std::lower_bound(bad.begin(), bad.end(), next_, before);
      const bool is_known = found != bad.end() && found->sample == next_;
      table_.add_error(loaded_.source->name(next_), is_known ? found->reason : "was not read");
    }
  }
  int64_t left_out() const { return left_out_; }

 private:
  static bool follows(const data::Batch& batch, int64_t i) {
    return batch.samples[static_cast<size_t>(i)] == batch.samples[static_cast<size_t>(i - 1)] + 1;
  }
  void add_whole(const data::Batch& batch, const torch::Tensor& outputs, int64_t begin, int64_t end) {
    data::Batch part;
    part.labels = batch.labels.narrow(0, begin, end - begin);
    part.targets = batch.targets.narrow(0, begin, end - begin);
    part.samples.assign(batch.samples.begin() + begin, batch.samples.begin() + end);
    add_results(loaded_, part, outputs.narrow(0, begin, end - begin), table_);
    next_ = part.samples.back() + 1;
  }

  const LoadedModel& loaded_;
  ImageTable& table_;
  int64_t next_ = 0, left_out_ = 0;
};

Outcome predict_as_rank(const Context& context, const PredictFlags& flags, const JoinedRanks& ranks) {
  const config::Configuration& requested = context.configuration;
  const auto limit = requested.table.row_of(requested.options.data.on_bad_image).origin.kind;
  const bool has_limit = limit == config::Origin::Kind::flag;
  const auto skips_bad_images = [&](config::Options& given) {  // an image that cannot be read is a row
    if (has_limit || requested.flags.print_config) return;
    given.data.on_bad_image = config::OnBadImage::skip;
    given.data.max_bad = config::kUnlimitedBad;
  };
  LoadedModel loaded = load_configuration(context.line, ranks, {flags.checkpoint, flags.which}, skips_bad_images);
  if (context.configuration.flags.print_config) return print_config(loaded);
  if (ranks.place().size > 1 && std::count(flags.inputs.begin(), flags.inputs.end(), "-") > 0) {
    throw Error(ErrorKind::usage, "several processes cannot read one standard input", "give a list as @FILE");
  }
  const auto open = [&](const config::Configuration& given, const std::vector<std::string>& trained) {
    return open_inputs(flags.inputs, given.options.data, trained);
  };
  load_network(open, ranks, loaded);

  TableColumns columns;
  columns.errors = true;
  columns.logits = flags.logits;
  columns.top_k = flags.top_k;
  columns.probabilities = flags.probabilities;
  columns.json = flags.json || core::ends_with(flags.output, ".json") || core::ends_with(flags.output, ".jsonl");
  const std::unique_ptr<ImageTable> table = image_table(loaded, columns);
  Rows rows(loaded, *table);
  std::optional<ResultStream> output;
  if (ranks.is_root()) output.emplace(flags.output);
  const auto visit = [&](const data::Batch& batch, const torch::Tensor& outputs, const data::Loader& loader) {
    rows.add(batch, outputs, loader);
    const std::string text = table->take_text();  // on other ranks it goes
    if (output && !output->write(text) && ranks.place().size == 1) throw ReaderLeft();
  };
  try {
    rows.add_left_out(loaded.source->size(), predict_together(ranks, loaded, visit));
  } catch (const ReaderLeft&) {  // predict ... | head: nobody waits for the other images
    return {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
  }
  if (output) {
    output->write(table->take_text());
    output->finish();
    if (flags.output != "-") core::log_info("{} rows in {}", loaded.source->size(), flags.output);
  }
  const int64_t left_out = rows.left_out(), all = loaded.source->size();
  if (left_out < all && (left_out == 0 || has_limit)) {
    if (left_out > 0) core::log_warning("bad images left out: {}", left_out);
    return {core::kExitOk, "predicted", loaded.saved.state.updates, loaded.saved.path};
  }
  throw Error(ErrorKind::data,
              left_out == all
                  ? format("none of the {} images of {} could be read", all, core::printable(flags.inputs.front()))
                  : format("{} of {} images could not be read", left_out, all),
              "the last column of their rows, error, has the reason; the other rows are complete");
}

}  // namespace

Outcome predict(const Context& context, const PredictFlags& flags) {
  return evaluate_on_devices(context, [&](const JoinedRanks& ranks) { return predict_as_rank(context, flags, ranks); });
}

}  // namespace stoker::train
