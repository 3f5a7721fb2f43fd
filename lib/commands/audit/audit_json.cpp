// SPDX-License-Identifier: Apache-2.0
#include "commands/audit/audit_json.h"

#include <cmath>

namespace stoker::train {
namespace {

using core::Json;

Json tallies_json(const std::vector<data::Tally>& tallies, const char* name) {
  Json list = Json::array();
  for (const data::Tally& tally : tallies) list.push_back({{name, tally.what}, {"samples", tally.samples}});
  return list;
}

Json sample_json(const Audited& audited, const data::SampleAt& at) {
  return {{"split", audited.split_of(at)},
          {"index", at.index},
          {"name", core::printable(audited.source_of(at).name(at.index))},
          {"label", audited.label_of(at)}};
}

Json split_json(const data::SplitFindings& split, const data::AuditFindings& findings) {
  Json json = {{"name", split.name}, {"samples", split.samples}, {"classes", Json::array()}};
  for (size_t k = 0; k < split.class_samples.size(); ++k) {
    json["classes"].push_back(
        {{"class", core::printable(findings.learned_names[k])}, {"samples", split.class_samples[k]}});
  }
  return json;
}

Json suspects_json(const Audited& audited) {
  Json json = Json::array();
  for (size_t i = 0; i < audited.suspects.size(); ++i) {
    const SplitSuspects& of = audited.suspects[i];
    Json samples = Json::array();
    for (const LabelSuspect& suspect : of.most_suspect) {
      Json sample = sample_json(audited, suspect.at);
      sample["loss"] = suspect.loss;
      sample["looks_like"] = suspect.looks_like;
      sample["confidence"] = std::isnan(suspect.confidence) ? Json(nullptr) : Json(suspect.confidence);
      samples.push_back(std::move(sample));
    }
    json.push_back({{"split", audited.splits[i].name},
                    {"judged", of.judged},
                    {"estimated_wrong", of.estimated_wrong >= 0 ? Json(of.estimated_wrong) : Json(nullptr)},
                    {"agreed", of.agreed >= 0 ? Json(of.agreed) : Json(nullptr)},
                    {"samples", std::move(samples)}});
  }
  return json;
}

}  // namespace

core::Json audit_json(const Audited& audited) {
  const data::AuditFindings& findings = audited.findings;
  Json json = {
      {"data_dir", core::printable(audited.data_dir)}, {"samples", findings.samples()}, {"seconds", audited.seconds}};
  json["splits"] = Json::array();
  for (const data::SplitFindings& split : findings.splits) json["splits"].push_back(split_json(split, findings));
  json["sizes"] = tallies_json(findings.sizes, "size");
  json["kinds"] = tallies_json(findings.kinds, "kind");
  json["corrupt"] = Json::array();
  for (const data::CorruptSample& bad : findings.bad) {
    Json sample = sample_json(audited, bad.at);
    sample["reason"] = bad.reason;
    json["corrupt"].push_back(std::move(sample));
  }
  json["one_colour"] = Json::array();
  for (const data::SampleAt& at : findings.one_value) json["one_colour"].push_back(sample_json(audited, at));
  json["duplicates"] = Json::array();
  for (const data::DuplicateGroup& group : findings.groups) {
    Json samples = Json::array();
    for (const data::SampleAt& at : group.members) samples.push_back(sample_json(audited, at));
    json["duplicates"].push_back({{"exact", group.exact},
                                  {"across_splits", group.across_splits},
                                  {"labels_differ", group.labels_differ},
                                  {"samples", std::move(samples)}});
  }
  json["run"] = audited.run.empty() ? Json(nullptr) : Json(core::printable(audited.run));
  json["checkpoints"] = audited.checkpoints;
  json["suspect_labels"] = suspects_json(audited);
  return json;
}

}  // namespace stoker::train
