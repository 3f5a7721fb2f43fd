// SPDX-License-Identifier: Apache-2.0
#include "engine/step/teacher.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/index_select.h>
#include <torch/types.h>

#include <string>
#include <utility>

#include "model/loss.h"

namespace stoker::engine {
namespace {

/// With the images and the classes of the student.
class TaughtNetwork : public model::ImageModel {
 public:
  TaughtNetwork(std::shared_ptr<model::ImageModel> network, const TeacherSettings& settings)
      : network_(std::move(network)), scale_(settings.scale), offset_(settings.offset) {
    register_module("network", network_);
    if (settings.rows.empty()) return;
    rows_ = torch::tensor(settings.rows, at::kLong).to(network_->parameters().front().device());
  }
  torch::Tensor forward(torch::Tensor images) override {
    const torch::Tensor logits = network_->forward(scale_.defined() ? images * scale_ + offset_ : images);
    return rows_.defined() ? logits.index_select(1, rows_) : logits;
  }
  std::string head_prefix() const override { return "network." + network_->head_prefix(); }

 private:
  std::shared_ptr<model::ImageModel> network_;
  torch::Tensor scale_, offset_, rows_;  // rows: int64 [classes]; undefined: one order
};

}  // namespace

Teacher::Teacher(std::shared_ptr<model::ImageModel> network, const TeacherSettings& settings)
    : network_(std::make_shared<TaughtNetwork>(std::move(network), settings)),
      share_(settings.share),
      temperature_(settings.temperature) {
  network_->eval();
  for (torch::Tensor& parameter : network_->parameters()) parameter.set_requires_grad(false);
}

void Teacher::keep(const torch::Tensor& outputs) { kept_ = outputs.to(network_->parameters().front().device()); }

torch::Tensor Teacher::kept(const data::Batch& batch) const {
  if (!kept_.defined() || static_cast<int64_t>(batch.samples.size()) != batch.image_count()) return {};
  return kept_.index_select(0, torch::tensor(batch.samples, at::kLong).to(kept_.device()));
}

torch::Tensor Teacher::outputs(const torch::Tensor& images) const {
  const torch::NoGradGuard no_gradients;
  return network_->forward(images);
}

torch::Tensor Teacher::loss_sum(const torch::Tensor& own_loss, const torch::Tensor& outputs,
                                const torch::Tensor& taught) const {
  return (1 - share_) * own_loss + share_ * model::distillation_sum(outputs, taught, temperature_);
}

}  // namespace stoker::engine
