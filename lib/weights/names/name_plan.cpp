// SPDX-License-Identifier: Apache-2.0
#include "weights/names/name_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "core/error.h"
#include "core/format.h"

namespace stoker::weights {
namespace {

/// Keys under which weights are kept, the average first, as timm prefers them.
constexpr std::string_view kGroups[] = {
    "state_dict_ema", "model_ema", "ema_state_dict", "state_dict", "model_state_dict", "model", "net",
    "network",        "weights",   "params",         "module"};
/// Prefixes that wrappers put before every name: DistributedDataParallel, Lightning, torch.compile(), Fabric, timm in
/// Hugging Face's.
constexpr std::string_view kPrefixes[] = {"module.",     "model.",    "_orig_mod.", "_forward_module.",
                                          "timm_model.", "backbone.", "net.",       "network."};
constexpr int kMaxPrefixes = 4;

bool begins_with(std::string_view text, std::string_view begin) { return text.substr(0, begin.size()) == begin; }

/// Counters that profilers (thop, ptflops) add to each module: numbers that no network has.
bool is_profiler_counter(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  return last == "total_ops" || last == "total_params";
}

/// The first of the groups whose key is one that weights are kept under; nullptr where none is. One key around another,
/// as in {"model": {"state_dict": ...}}, counts as the outer one.
const std::string* usual_group(const std::set<std::string>& groups) {
  for (const std::string_view key : kGroups) {
    for (const std::string& group : groups) {
      if (std::string_view(group).substr(0, group.find('.')) == key) return &group;
    }
  }
  return nullptr;
}

/// The dictionaries of tensors that come out of objects.
std::set<std::string> groups_of(const std::vector<ObjectName>& objects) {
  std::set<std::string> groups;
  for (const ObjectName& object : objects) {
    if (object.is_tensor) groups.insert(object.group);
  }
  return groups;
}

std::vector<std::string> shown_groups(const std::vector<GroupedName>& given, const std::string* without) {
  std::set<std::string> groups;
  for (const GroupedName& entry : given) groups.insert(entry.group);
  std::vector<std::string> shown;
  for (const std::string& group : groups) {
    if (without == nullptr || group != *without) shown.push_back(group.empty() ? "the top" : core::printable(group));
  }
  return shown;
}

/// The dictionary that holds the weights.
std::string choose_group(const std::vector<GroupedName>& given, const std::vector<ObjectName>& objects,
                         const std::string& what) {
  std::set<std::string> groups;
  for (const GroupedName& entry : given) groups.insert(entry.group);
  if (groups.size() == 1) return *groups.begin();
  if (const std::string* usual = usual_group(groups)) return *usual;
  if (groups.count("") > 0) return "";
  const std::set<std::string> of_objects = groups_of(objects);
  if (const std::string* usual = usual_group(of_objects)) return *usual;
  throw core::Error(
      core::ErrorKind::data,
      core::format("{}: weights are expected at the top or under state_dict, model or model_ema, but it has {}", what,
                   core::list_text(shown_groups(given, nullptr))),
      "in Python: torch.save(checkpoint[...], 'weights.pth') with the dictionary that holds the weights");
}

/// Takes off what most names begin with because of a wrapper. Names without it are emptied.
std::string strip_prefixes(std::vector<std::string>& names) {
  std::string all;
  for (int i = 0; i < kMaxPrefixes; ++i) {
    const std::string_view* best = nullptr;
    for (const std::string_view& prefix : kPrefixes) {
      size_t with = 0, left = 0;
      for (const std::string& name : names) {
        with += begins_with(name, prefix) ? 1 : 0;
        left += name.empty() ? 0 : 1;
      }
      if (2 * with > left) best = &prefix;
    }
    if (best == nullptr) break;
    all += *best;
    for (std::string& name : names) name = begins_with(name, *best) ? name.substr(best->size()) : "";
  }
  return all;
}

struct Candidate {
  Dialect dialect;
  struct Parts {
    int count = 1;
    bool is_known = false;                      // to the dialect, and a tensor of the network
    std::vector<std::pair<int, size_t>> there;  // which part, place
  };
  std::map<std::string, Parts> sources;  // by our name
  std::vector<size_t> idle;
  size_t wanted = 0;  // of the names that the network has
};

Candidate read_as(Dialect dialect, const std::vector<std::string>& names,
                  const std::unordered_set<std::string>& wanted) {
  Candidate candidate{std::move(dialect), {}, {}, 0};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    OurName ours;
    const NameKind kind = translate(candidate.dialect, names[i], ours);
    if (kind == NameKind::idle) candidate.idle.push_back(i);
    if (kind == NameKind::unknown) ours = {names[i], 0, 1};
    if (kind == NameKind::idle) continue;
    Candidate::Parts& parts = candidate.sources[ours.name];
    if (parts.there.empty() && kind == NameKind::known && wanted.count(ours.name) > 0) {
      parts.is_known = true;
      ++candidate.wanted;
    }
    parts.count = ours.parts;
    parts.there.emplace_back(ours.part, i);
  }
  return candidate;
}

/// Places of the parts of one tensor.
std::vector<size_t> in_order(const std::string& ours, Candidate::Parts& parts, const std::string& what) {
  std::sort(parts.there.begin(), parts.there.end());
  std::vector<size_t> places;
  bool whole = parts.there.size() == static_cast<size_t>(parts.count);
  for (const auto& [part, place] : parts.there) {
    whole = whole && part == static_cast<int>(places.size());
    places.push_back(place);
  }
  if (whole) return places;
  throw core::Error(
      core::ErrorKind::data,
      core::format("{}: {} is there more than once, or in parts of which one is missing", what, core::printable(ours)));
}

/// Takes the objects, which stand behind `tensors` names, out of the parts. The place of the first one among the
/// objects; -1 where the tensors suffice without them.
int64_t take_objects(Candidate::Parts& parts, size_t tensors) {
  const auto first = std::stable_partition(parts.there.begin(), parts.there.end(),
                                           [&](const auto& part) { return part.second < tensors; });
  if (first == parts.there.end()) return -1;
  const auto place = static_cast<int64_t>(first->second - tensors);
  parts.there.erase(first, parts.there.end());
  return parts.there.size() == static_cast<size_t>(parts.count) ? -1 : place;
}

/// The names in one dictionary, those of objects behind those of tensors, without the prefix that most of the tensors
/// have, be they plain or not. Others are empty.
std::vector<std::string> names_in_group(const std::vector<GroupedName>& given, const std::vector<ObjectName>& objects,
                                        NamePlan& plan) {
  std::vector<std::string> names;
  for (const GroupedName& entry : given) names.push_back(entry.group == plan.group ? entry.name : "");
  for (std::string& name : names) {
    if (!is_profiler_counter(name)) continue;
    name.clear();
    ++plan.profiler_counters;
  }
  for (const ObjectName& object : objects) {
    names.push_back(object.group == plan.group && object.is_tensor ? object.name : "");
  }
  plan.prefix = strip_prefixes(names);
  for (size_t i = 0; i < objects.size(); ++i) {
    const ObjectName& object = objects[i];
    if (object.is_tensor || object.group != plan.group || !begins_with(object.name, plan.prefix)) continue;
    names[given.size() + i] = object.name.substr(plan.prefix.size());
  }
  return names;
}

NamePlan plan_group(const std::string& group, const std::string& network, const std::vector<std::string>& wanted,
                    const std::vector<GroupedName>& given, const std::string& what,
                    const std::vector<ObjectName>& objects) {
  NamePlan plan;
  plan.group = group;
  plan.other_groups = shown_groups(given, &group);
  const std::vector<std::string> names = names_in_group(given, objects, plan);

  const std::unordered_set<std::string> wanted_set(wanted.begin(), wanted.end());
  std::vector<Candidate> candidates;
  for (Dialect& dialect : dialects_of(network)) candidates.push_back(read_as(std::move(dialect), names, wanted_set));
  const auto best = std::max_element(candidates.begin(), candidates.end(),
                                     [](const Candidate& a, const Candidate& b) { return a.wanted < b.wanted; });
  plan.dialect = best->dialect.name;
  plan.norm_eps = best->dialect.norm_eps;
  plan.remark = best->dialect.remark;
  for (auto& [ours, parts] : best->sources) {
    const int64_t object = take_objects(parts, given.size());
    if (object >= 0) {
      if (wanted_set.count(ours) > 0) plan.objects.push_back({ours, static_cast<size_t>(object)});
      continue;
    }
    plan.sources.push_back({ours, in_order(ours, parts, what)});
    plan.matched += parts.is_known ? 1 : 0;
  }
  for (const size_t place : best->idle) {
    if (place < given.size()) plan.left_out.push_back(given[place].name);
  }
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i].group == plan.group && names[i].empty() && !is_profiler_counter(given[i].name))
      plan.left_out.push_back(given[i].name);
  }
  return plan;
}

}  // namespace

NamePlan plan_names(const std::string& network, const std::vector<std::string>& wanted,
                    const std::vector<GroupedName>& given, const std::string& what,
                    const std::vector<ObjectName>& objects) {
  NamePlan plan = plan_group(choose_group(given, objects, what), network, wanted, given, what, objects);
  if (plan.matched > 0 || !plan.objects.empty()) return plan;
  // The weights may all be objects, with plain tensors of an optimizer beside them.
  const std::set<std::string> groups = groups_of(objects);
  const std::string* const usual = usual_group(groups);
  if (usual == nullptr || *usual == plan.group) return plan;
  NamePlan of_objects = plan_group(*usual, network, wanted, given, what, objects);
  return of_objects.objects.empty() ? plan : of_objects;
}

}  // namespace stoker::weights
