// SPDX-License-Identifier: Apache-2.0
#include "proof/remedy/remedy.h"

#include <ATen/Context.h>
#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <set>

#include "core/error.h"
#include "core/format.h"
#include "engine/device/without_onednn.h"
#include "proof/operation/operation.h"
#include "proof/remedy/cache_sizes.h"
#include "proof/remedy/operator_replacements.h"

namespace stoker::proof {
namespace {

struct NamedWay {
  Alternative way;
  const char *name, *text;
};
constexpr NamedWay kWays[] = {{Alternative::without_onednn, "without_onednn", "without oneDNN"},
                              {Alternative::sliced, "sliced", "as a slice and a convolution without stride"},
                              {Alternative::in_float32, "in_float32", "in float32 without oneDNN"},
                              {Alternative::own_product, "own_product", "by loops of this program"},
                              {Alternative::own_sums, "own_sums", "with sums of this program"}};

const NamedWay& named(Alternative way) { return kWays[static_cast<size_t>(way)]; }

// State of LibTorch's callbacks, which are plain functions. Never freed: other threads may be in it at the end.
struct WaysNow {
  std::map<std::string, Alternative> by_family;
  std::set<std::string> names;  ///< names of operators that are among them
};
const WaysNow* ways_now = nullptr;

const WaysNow* looked_up(const std::map<std::string, Alternative>& ways) {
  auto* const result = new WaysNow{ways, {}};
  for (const auto& [family, way] : ways) result->names.insert(family.substr(0, family.find(' ')));
  return result;
}
struct Switched : at::ObserverContext {
  engine::WithoutOnednn off;
};

std::unique_ptr<at::ObserverContext> switch_off(const at::RecordFunction& function) {
  const auto name = function.operator_name();
  if (!name || ways_now == nullptr || ways_now->names.count(name->name) == 0) return nullptr;
  const auto found = ways_now->by_family.find(family_of(name->name, arguments_of(function)));
  if (found == ways_now->by_family.end() || found->second != Alternative::without_onednn) return nullptr;
  return std::make_unique<Switched>();
}

/// LibTorch destroys the context, and with it the scope, after this.
void switch_on(const at::RecordFunction& /*function*/, at::ObserverContext* /*context*/) {}

}  // namespace

void to_json(core::Json& json, const Remedy& remedy) {
  core::Json ways = core::Json::object();
  for (const auto& [key, way] : remedy.ways) ways[key] = named(way).name;
  json = {{"answers_cache_sizes", remedy.answers_cache_sizes},
          {"isa", remedy.isa},
          {"onednn_off", remedy.onednn_off},
          {"ways", ways}};
}

void from_json(const core::Json& json, Remedy& remedy) {
  json.at("answers_cache_sizes").get_to(remedy.answers_cache_sizes);
  json.at("isa").get_to(remedy.isa);
  json.at("onednn_off").get_to(remedy.onednn_off);
  for (const auto& [family, name] : json.at("ways").items()) {
    if (const auto way = alternative_of(name.get<std::string>())) remedy.ways[family] = *way;
  }
}

std::string text_of(Alternative way) { return named(way).text; }

std::string text_of(const Remedy& remedy) {
  std::vector<std::string> parts;
  if (remedy.answers_cache_sizes) parts.emplace_back("oneDNN given usual cache sizes");
  if (!remedy.isa.empty()) parts.push_back("oneDNN limited to " + remedy.isa);
  if (remedy.onednn_off) parts.emplace_back("without oneDNN");
  std::map<Alternative, int64_t> counts;
  for (const auto& [key, way] : remedy.ways) ++counts[way];
  for (const auto& [way, count] : counts) {
    parts.push_back(core::format("{} {}", core::counted(count, "operation"), text_of(way)));
  }
  return core::format("{}", fmt::join(parts, ", "));
}

std::string name_of(Alternative way) { return named(way).name; }

std::optional<Alternative> alternative_of(const std::string& name) {
  for (const NamedWay& way : kWays) {
    if (name == way.name) return way.way;
  }
  return std::nullopt;
}

Remedy known_remedy() {
  Remedy remedy;
  remedy.answers_cache_sizes = cache_sizes_are_wrong();
  return remedy;
}

std::vector<Alternative> alternatives_for(const Operation& operation) {
  const std::string& name = operation.name;
  const bool is_backward = name == "aten::convolution_backward";
  if (name == "aten::convolution" || is_backward) {
    const at::Tensor weight = operation.arguments.at(is_backward ? 2 : 1).toTensor();
    const std::vector<int64_t> stride = operation.arguments.at(is_backward ? 4 : 3).toIntVector();
    std::vector<Alternative> ways = {Alternative::without_onednn};
    const bool is_point = weight.numel() == weight.size(0) * weight.size(1);
    if (is_point && *std::max_element(stride.begin(), stride.end()) > 1) ways.push_back(Alternative::sliced);
    if (weight.scalar_type() != at::kFloat) ways.push_back(Alternative::in_float32);
    return ways;
  }
  if (name == "aten::native_batch_norm" && operation.arguments.at(5).toBool()) return {Alternative::own_sums};
  if (!is_matrix_product(name)) return {Alternative::without_onednn};
  if (operation.arguments.at(1).toTensor().scalar_type() == at::kFloat) return {Alternative::own_product};
  return {Alternative::without_onednn, Alternative::own_product};
}

namespace {

/// oneDNN reads the variable once. The bits of its instruction sets are those of dnnl_cpu_isa_t in dnnl_types.h.
void limit_isa(const std::string& isa) {
  ::setenv("ONEDNN_MAX_CPU_ISA", isa.c_str(), /*overwrite=*/1);
  const auto in_force = reinterpret_cast<unsigned (*)()>(::dlsym(RTLD_DEFAULT, "dnnl_get_effective_cpu_isa"));
  const std::map<std::string, unsigned> bits = {{"SSE41", 0x1}, {"AVX2", 0x7}, {"AVX512_CORE", 0x27}};
  const auto wanted = bits.find(isa);
  if (in_force == nullptr || wanted == bits.end() || (in_force() & ~wanted->second) == 0) return;
  throw core::Error(core::ErrorKind::backend,
                    core::format("oneDNN computes wrongly on this machine unless it is limited to {}, and it was used "
                                 "before the limit could be set",
                                 isa),
                    core::format("start again with ONEDNN_MAX_CPU_ISA={} in the environment", isa));
}

}  // namespace

void apply(const Remedy& remedy) {
  override_cache_sizes(remedy.answers_cache_sizes);
  if (!remedy.isa.empty()) limit_isa(remedy.isa);
  if (remedy.onednn_off) at::globalContext().setUserEnabledMkldnn(false);
  static std::atomic<bool> has_callback{false};
  ways_now = looked_up(remedy.ways);
  if (remedy.ways.empty()) return;
  if (!has_callback.exchange(true)) {
    at::addGlobalCallback(
        at::RecordFunctionCallback(switch_off, switch_on).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  replace_operators(remedy.ways);
}

}  // namespace stoker::proof
