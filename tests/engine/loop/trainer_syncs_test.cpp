// SPDX-License-Identifier: Apache-2.0
// The training loop does not wait for the device but to read the figures of a report, once.
#include <gtest/gtest.h>
#include <torch/version.h>

#include <functional>
#include <string>
#include <vector>

#include "loop/tiny_run.h"
#include "optim/torch_kernels.h"
#include "tests/hidden_syncs.h"

namespace stoker::engine {
namespace {

using namespace tiny_run;

using Names = std::vector<std::string>;

/// The syncs of each update and of each report.
class SyncRecorder : public Observer {
 public:
  std::vector<Names> updates, reports;
  void on_update(const UpdateEvent& event) override {
    const Names seen = syncs_.take();
    if (event.update_in_epoch > 1) updates.push_back(seen);  // an epoch begins with what its end and its begin read
  }
  void on_report(const ReportEvent&) override { reports.push_back(syncs_.take()); }

 private:
  fixtures::HiddenSyncs syncs_;
};

TinyOptions sync_options() {
  TinyOptions options;  // 7 updates per epoch, the last of one batch
  options.accumulation = 2;
  options.limits.epochs = 2;
  options.has_batch_norm = true;
  // Before, SGD reads whether it is to be skipped.
  options.scaling.enabled = TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4);
  options.mix.mixup_alpha = 0.2;
  options.report_every = config::Interval::updates(3);
  return options;
}

TEST_F(TrainerTest, UpdatesReadNothingFromTheDeviceAndReportsOnce) {
  TinyRun run(folder_ / "run", sync_options());
  SyncRecorder recorder;
  run.observers_.add(recorder);
  const optim::DeviceKernelsScope as_on_a_device;
  run.go();
  ASSERT_EQ(recorder.updates.size(), 12U);
  for (const Names& names : recorder.updates) EXPECT_EQ(names, Names{});
  ASSERT_EQ(recorder.reports.size(), 4U);
  for (const Names& names : recorder.reports) EXPECT_EQ(names, Names{"aten::to"});
}

/// Trains with `read` at the gradient of a weight: each update shows the operation `name` first.
void expect_found(const std::string& folder, const std::function<void(const torch::Tensor&)>& read, const char* name) {
  TinyRun run(folder, sync_options());
  run.learner().model->named_parameters()["fc.weight"].register_hook(read);
  SyncRecorder recorder;
  run.observers_.add(recorder);
  const optim::DeviceKernelsScope as_on_a_device;
  run.go();
  ASSERT_FALSE(recorder.updates.empty());
  for (const Names& names : recorder.updates) {
    ASSERT_FALSE(names.empty());
    EXPECT_EQ(names.front(), name);
  }
}

TEST_F(TrainerTest, ANumberThatIsReadInAnUpdateIsFound) {
  double read = 0;
  expect_found(
      folder_ / "run", [&read](const torch::Tensor& gradient) { read += gradient.sum().item<double>(); },
      "aten::_local_scalar_dense");
}

TEST_F(TrainerTest, ACopyToTheHostInAnUpdateIsFound) {
  expect_found(
      folder_ / "run", [](const torch::Tensor& gradient) { gradient.to(torch::kCPU); }, "aten::to");
}

}  // namespace
}  // namespace stoker::engine
