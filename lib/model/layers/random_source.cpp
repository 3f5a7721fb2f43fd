// SPDX-License-Identifier: Apache-2.0
#include "model/layers/random_source.h"

#include <utility>

namespace stoker::model {
namespace {

at::Generator& source_of_thread() {
  thread_local at::Generator source;
  return source;
}

}  // namespace

DrawScope::DrawScope(at::Generator generator) : outer_(std::exchange(source_of_thread(), std::move(generator))) {}
DrawScope::~DrawScope() { source_of_thread() = std::move(outer_); }

const at::Generator& random_source() { return source_of_thread(); }

}  // namespace stoker::model
