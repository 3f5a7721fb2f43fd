// SPDX-License-Identifier: Apache-2.0
#include "weights/file/opaque_tensors.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/format.h"

namespace stoker::weights {
namespace {

/// A function of Python that builds tensors: the argument that is their class, and how Python makes plain ones of them.
struct TensorBuilder {
  std::string_view begin;  ///< start of its name: releases add _v2
  int class_argument;      ///< -1: none
  const char* plain;
};
constexpr TensorBuilder kTensorBuilders[] = {
    {"torch._tensor._rebuild_from_type", 1, "tensor.detach().as_subclass(torch.Tensor)"},
    {"torch._utils._rebuild_sparse", -1, "tensor.to_dense()"},
    {"torch._utils._rebuild_qtensor", -1, "tensor.dequantize()"},
    {"torch._utils._rebuild_wrapper_subclass", 0, "tensor.full_tensor() of a DTensor"},
    {"torch._utils._rebuild_", -1, ""},
};
constexpr TensorBuilder kArrays = {"numpy.", 0, "torch.as_tensor(array)"};

bool is_built_by(const std::string& builder, const TensorBuilder& row) {
  return builder.compare(0, row.begin.size(), row.begin) == 0;
}

/// nullptr where no tensor and no array comes out of it.
const TensorBuilder* builder_row(const std::string& builder) {
  for (const TensorBuilder& row : kTensorBuilders) {
    if (is_built_by(builder, row)) return &row;
  }
  return is_built_by(builder, kArrays) ? &kArrays : nullptr;
}

}  // namespace

OpaqueEntry opaque_entry(const PickleTree& tree, const PickleValue& value, std::string group, std::string name) {
  const auto name_of = [&](const PickleValue& opaque) {
    return tree.opaque_names.at(static_cast<size_t>(opaque.integer));
  };
  OpaqueEntry entry{std::move(group), std::move(name), name_of(value), name_of(value), false};
  const TensorBuilder* const row = builder_row(entry.builder);
  entry.is_tensor = row != nullptr && row != &kArrays;
  if (row == nullptr || row->class_argument < 0 || value.items.empty()) return entry;
  const std::vector<ValueIndex>& arguments = tree.at(value.items[0]).items;
  const auto which = static_cast<size_t>(row->class_argument);
  if (tree.at(value.items[0]).kind != ValueKind::tuple || which >= arguments.size()) return entry;
  const PickleValue& type = tree.at(arguments[which]);
  if (type.kind == ValueKind::opaque && type.items.empty()) entry.type = name_of(type);
  return entry;
}

std::string opaque_reason(const std::vector<OpaqueEntry>& entries) {
  constexpr size_t kNamed = 8;
  std::vector<std::pair<std::string, std::vector<std::string>>> by_type;
  for (const OpaqueEntry& entry : entries) {
    auto place = std::find_if(by_type.begin(), by_type.end(), [&](const auto& row) { return row.first == entry.type; });
    if (place == by_type.end()) place = by_type.insert(place, {entry.type, {}});
    place->second.push_back(core::printable(entry.name));
  }
  std::string text;
  for (const auto& [type, names] : by_type) {
    text += core::format("{}{} came out of {}", text.empty() ? "" : ", ", core::list_text(names, kNamed), type);
  }
  return text + ", and nothing in a file is executed";
}

std::string opaque_hint(const std::vector<OpaqueEntry>& entries) {
  std::vector<std::string> ways;
  for (const OpaqueEntry& entry : entries) {
    const TensorBuilder* const row = builder_row(entry.builder);
    const std::string way = row == nullptr ? "" : row->plain;
    if (!way.empty() && std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  }
  const std::string calls = ways.empty() ? "" : " (" + core::list_text(ways) + ")";
  return "in Python, where the file was made: save them as plain tensors" + calls +
         ", then torch.save(state_dict, 'weights.pth')";
}

}  // namespace stoker::weights
