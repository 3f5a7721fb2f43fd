// SPDX-License-Identifier: Apache-2.0
#include "engine/device/without_onednn.h"

#include <ATen/Context.h>

#include <mutex>

namespace stoker::engine {
namespace {

std::mutex switching;
int switched_off = 0;  // scopes that are open
bool was_on = true;

}  // namespace

WithoutOnednn::WithoutOnednn() {
  const std::lock_guard<std::mutex> lock(switching);
  if (switched_off++ > 0) return;
  was_on = at::globalContext().userEnabledMkldnn();
  at::globalContext().setUserEnabledMkldnn(false);
}

WithoutOnednn::~WithoutOnednn() {
  const std::lock_guard<std::mutex> lock(switching);
  if (--switched_off == 0) at::globalContext().setUserEnabledMkldnn(was_on);
}

}  // namespace stoker::engine
