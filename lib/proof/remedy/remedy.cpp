// SPDX-License-Identifier: Apache-2.0
#include "proof/remedy/remedy.h"

#include <ATen/Context.h>
#include <ATen/record_function.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>

#include "core/format.h"
#include "proof/operation/operation.h"
#include "proof/remedy/cache_sizes.h"
#include "proof/remedy/other_ways.h"

namespace stoker::proof {
namespace {

struct NamedWay {
  Way way;
  const char *name, *text;
};
constexpr NamedWay kWays[] = {{Way::without_onednn, "without_onednn", "without oneDNN"},
                              {Way::sliced, "sliced", "as a slice and a convolution without stride"},
                              {Way::in_float32, "in_float32", "in float32 without oneDNN"},
                              {Way::own_product, "own_product", "by loops of this program"}};

const NamedWay& named(Way way) { return kWays[static_cast<size_t>(way)]; }

bool begins_with(const std::string& text, const char* begin) { return text.rfind(begin, 0) == 0; }

// What LibTorch's callbacks, which are plain functions, look up. Never freed: other threads may be in it at the end.
struct WaysNow {
  std::map<std::string, Way> by_family;
  std::set<std::string> names;  ///< of operators that are among them
};
const WaysNow* ways_now = nullptr;

const WaysNow* looked_up(const std::map<std::string, Way>& ways) {
  auto* const result = new WaysNow{ways, {}};
  for (const auto& [family, way] : ways) result->names.insert(family.substr(0, family.find(' ')));
  return result;
}
std::mutex switching;
int without_onednn = 0;  // operations that are being computed so
bool was_on = true;

struct Switched : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> switch_off(const at::RecordFunction& function) {
  const auto name = function.operator_name();
  if (!name || ways_now == nullptr || ways_now->names.count(name->name) == 0) return nullptr;
  const auto found = ways_now->by_family.find(family_of(name->name, function.inputs()));
  if (found == ways_now->by_family.end() || found->second != Way::without_onednn) return nullptr;
  const std::lock_guard<std::mutex> lock(switching);
  if (without_onednn++ == 0) {
    was_on = at::globalContext().userEnabledMkldnn();
    at::globalContext().setUserEnabledMkldnn(false);
  }
  return std::make_unique<Switched>();
}

void switch_on(const at::RecordFunction& /*function*/, at::ObserverContext* context) {
  if (context == nullptr) return;
  const std::lock_guard<std::mutex> lock(switching);
  if (--without_onednn == 0) at::globalContext().setUserEnabledMkldnn(was_on);
}

}  // namespace

core::Json to_json(const Remedy& remedy) {
  core::Json ways = core::Json::object();
  for (const auto& [key, way] : remedy.ways) ways[key] = named(way).name;
  return {{"answers_cache_sizes", remedy.answers_cache_sizes},
          {"isa", remedy.isa},
          {"onednn_off", remedy.onednn_off},
          {"ways", ways}};
}

Remedy remedy_from_json(const core::Json& json) {
  Remedy remedy;
  json.at("answers_cache_sizes").get_to(remedy.answers_cache_sizes);
  json.at("isa").get_to(remedy.isa);
  json.at("onednn_off").get_to(remedy.onednn_off);
  for (const auto& [key, name] : json.at("ways").items()) {
    for (const NamedWay& way : kWays) {
      if (name.get<std::string>() == way.name) remedy.ways[key] = way.way;
    }
  }
  return remedy;
}

std::string text_of(Way way) { return named(way).text; }

std::string text_of(const Remedy& remedy) {
  std::vector<std::string> parts;
  if (remedy.answers_cache_sizes) parts.emplace_back("oneDNN given usual cache sizes");
  if (!remedy.isa.empty()) parts.push_back("oneDNN limited to " + remedy.isa);
  if (remedy.onednn_off) parts.emplace_back("without oneDNN");
  std::map<Way, int64_t> counts;
  for (const auto& [key, way] : remedy.ways) ++counts[way];
  for (const auto& [way, count] : counts) {
    parts.push_back(core::format("{} {}", core::counted(count, "operation"), text_of(way)));
  }
  return core::format("{}", fmt::join(parts, ", "));
}

std::vector<Way> ways_for(const std::string& family) {
  if (begins_with(family, "aten::convolution")) return {Way::sliced, Way::without_onednn, Way::in_float32};
  const bool is_product = begins_with(family, "aten::mm ") || begins_with(family, "aten::addmm ") ||
                          begins_with(family, "aten::bmm ") || begins_with(family, "aten::baddbmm ");
  if (is_product) return {Way::without_onednn, Way::own_product};
  return {Way::without_onednn};
}

void apply(const Remedy& remedy) {
  answer_cache_sizes(remedy.answers_cache_sizes);
  if (!remedy.isa.empty()) ::setenv("ONEDNN_MAX_CPU_ISA", remedy.isa.c_str(), /*overwrite=*/1);
  if (remedy.onednn_off) at::globalContext().setUserEnabledMkldnn(false);
  static std::atomic<bool> has_callback{false};
  ways_now = looked_up(remedy.ways);
  if (remedy.ways.empty()) return;
  if (!has_callback.exchange(true)) {
    at::addGlobalCallback(
        at::RecordFunctionCallback(switch_off, switch_on).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  }
  compute_in_other_ways(remedy.ways);
}

}  // namespace stoker::proof
