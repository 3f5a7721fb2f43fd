// SPDX-License-Identifier: Apache-2.0
// `train audit`: what is wrong with a data set.
#include <chrono>

#include "app/app.h"
#include "app/audit/audit_json.h"
#include "app/audit/audit_text.h"
#include "app/output/result_output.h"
#include "app/setup/assemble.h"
#include "core/error.h"
#include "core/log.h"
#include "data/open_datasets.h"
#include "observe/listeners/console.h"

namespace stoker::app {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// A live line on a terminal, a plain line now and then elsewhere.
class AuditNews {
 public:
  explicit AuditNews(bool quiet) : console_(quiet), begin_(Clock::now()), last_(begin_) {}

  void on_progress(int64_t done, int64_t total) {
    const Clock::time_point now = Clock::now();
    if (now - last_ < (console_.is_live() ? std::chrono::milliseconds(100) : std::chrono::seconds(30))) return;
    last_ = now;
    const double per_second = static_cast<double>(done) / seconds_since(begin_);
    const std::string line = core::format("looking at {}/{} samples  {} samples/s", core::count_text(done),
                                          core::count_text(total), core::count_text(static_cast<int64_t>(per_second)));
    if (console_.is_live()) {
      console_.show_live({{line, 0}});
    } else {
      core::log_info("{}", line);
    }
  }
  double seconds() const { return seconds_since(begin_); }
  void end() { console_.clear_live(); }

 private:
  observe::Console console_;
  const Clock::time_point begin_;
  Clock::time_point last_;
};

config::DataOptions audited_data(const config::Configuration& given) {
  config::DataOptions options = given.options.data;
  if (!given.command.input.empty()) options.data_dir = given.command.input;
  if (!given.command.input.empty() || given.command.names_data) return options;
  throw core::Error(core::ErrorKind::usage, "no data set is named: train audit DATASET [options]",
                    "name the folder that holds it");
}

}  // namespace

Outcome audit(const Invocation& invocation) {
  const config::Configuration& given = invocation.configuration;
  if (given.command.print_config) {
    write_result("-", config::render_yaml(given.table, /*with_origin=*/true));
    return {core::kExitOk, ""};
  }
  const config::DataOptions options = audited_data(given);
  Audited audited;
  audited.data_dir = options.data_dir;
  std::vector<std::string> notes;
  for (auto& [name, source] : data::open_every_split(options, notes))
    audited.splits.push_back({name, std::move(source)});
  if (!given.command.json) {
    for (const std::string& note : notes) core::log_info("note      {}", note);
  }
  data::AuditSettings settings;
  settings.limits = decode_limits(options.max_image_megapixels);
  const config::Auto<int64_t>& workers = given.options.loader.num_workers;
  settings.threads = workers.is_auto() ? core::read_machine_facts().cpus : workers.value();
  AuditNews news(given.options.log.quiet || given.command.json);
  audited.findings =
      data::audit(audited.splits, settings, [&](int64_t done, int64_t total) { news.on_progress(done, total); });
  news.end();
  audited.seconds = news.seconds();
  write_result("-", given.command.json ? audit_json(audited).dump(1) + "\n" : audit_text(audited));
  return {core::kExitOk, "audited"};
}

}  // namespace stoker::app
