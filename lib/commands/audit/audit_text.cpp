// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "commands/audit/audited.h"

namespace stoker::train {
namespace {

using core::count_text;
using core::format;
using data::DuplicateGroup;

constexpr size_t kExamples = 10;  // of each finding; all are in the JSON and in the page

std::string tallies_text(const std::vector<data::Tally>& tallies) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, tallies.size()); ++i) {
    text += format("{}{}: {}", i > 0 ? "; " : "", tallies[i].what, count_text(tallies[i].samples));
  }
  return tallies.size() > kShown ? text + format("; and {} more", tallies.size() - kShown) : text;
}

/// "class  train  val", a line per class.
std::string class_table(const data::AuditFindings& findings) {
  size_t width = 5;
  for (const std::string& name : findings.learned_names) width = std::max(width, core::printable(name).size());
  std::string text = format("{:<{}}", "class", width);
  for (const data::SplitFindings& split : findings.splits) text += format("  {:>9}", split.name);
  text += "\n";
  for (size_t k = 0; k < findings.learned_names.size(); ++k) {
    text += format("{:<{}}", core::printable(findings.learned_names[k]), width);
    for (const data::SplitFindings& split : findings.splits) {
      text += format("  {:>{}}", count_text(split.class_samples[k]), std::max<size_t>(9, split.name.size()));
    }
    text += "\n";
  }
  return text;
}

/// `where`: the rest is, as in ": --json lists them".
std::string more_text(size_t all, const char* where = "") {
  if (all <= kExamples) return "";
  return format("            and {} more{}\n", count_text(static_cast<int64_t>(all - kExamples)), where);
}

std::string group_line(const Audited& audited, const DuplicateGroup& group) {
  std::string text = group.exact ? "  equal     " : "  near      ";
  const std::vector<data::SampleAt> examples = group.examples(4);
  for (size_t i = 0; i < examples.size(); ++i) {
    text += format("{}{} ({})", i > 0 ? " = " : "", audited.name_of(examples[i]), audited.label_of(examples[i]));
  }
  if (group.members.size() > examples.size()) text += format(" and {} more", group.members.size() - examples.size());
  return text + "\n";
}

/// A heading with a count, and examples of the groups for which `wanted` holds.
template <typename Wanted>
std::string groups_text(const Audited& audited, const std::string& heading, const Wanted& wanted) {
  std::string text;
  size_t found = 0;
  int64_t samples = 0;
  for (const DuplicateGroup& group : audited.findings.groups) {
    if (!wanted(group)) continue;
    samples += static_cast<int64_t>(group.members.size());
    if (++found <= kExamples) text += group_line(audited, group);
  }
  if (found == 0) return heading + "none\n";
  return format("{}{} images in {} group{}\n", heading, count_text(samples), count_text(static_cast<int64_t>(found)),
                found == 1 ? "" : "s") +
         text + more_text(found);
}

std::string suspect_line(const Audited& audited, const LabelSuspect& suspect) {
  const std::string sure =
      std::isnan(suspect.confidence) ? "" : format(" ({:.0f} %)", std::floor(100 * suspect.confidence));
  return format("            {} is labelled {}, looks like {}{}, loss {:.2f}\n", audited.name_of(suspect.at),
                audited.label_of(suspect.at), suspect.looks_like, sure, suspect.loss);
}

double percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole));
}

std::string suspects_text(const Audited& audited) {
  std::string text;
  for (size_t i = 0; i < audited.suspects.size(); ++i) {
    const SplitSuspects& of = audited.suspects[i];
    text += format("labels of {}: ", audited.splits[i].name);
    if (of.estimated_wrong >= 0) {
      text += format("about {} of {} look wrong ({:.1f} %), to a network that agrees with {:.1f} %; ",
                     count_text(of.estimated_wrong), count_text(of.judged), percent(of.estimated_wrong, of.judged),
                     percent(of.agreed, of.judged));
    }
    text += format("the most suspect, by {} checkpoint{} of {}\n", audited.checkpoints.size(),
                   audited.checkpoints.size() == 1 ? "" : "s", core::printable(audited.run));
    for (size_t k = 0; k < std::min(kExamples, of.most_suspect.size()); ++k) {
      text += suspect_line(audited, of.most_suspect[k]);
    }
    text += more_text(of.most_suspect.size(), ": --output FILE.html shows them with pictures, --json lists them");
    constexpr double kWeak = 80;  // percent of labels that a network predicts
    if (of.agreed >= 0 && percent(of.agreed, of.judged) < kWeak) {
      text += "            a network that disagrees so often suspects many right labels: train it further\n";
    }
  }
  return text;
}

}  // namespace

std::string Audited::label_of(const data::SampleAt& at) const {
  const data::Source& source = source_of(at);
  if (source.num_targets() == 0) {
    const int64_t label = source.label(at.index);
    return label < 0 ? "no label" : core::printable(source.class_names()[static_cast<size_t>(label)]);
  }
  std::vector<float> targets(static_cast<size_t>(source.num_targets()));
  source.targets(at.index, targets.data());
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(6, targets.size()); ++i)
    text += format("{}{:.4g}", i > 0 ? " " : "", targets[i]);
  return targets.size() > 6 ? text + " ..." : text;
}

std::string audit_text(const Audited& audited) {
  const data::AuditFindings& findings = audited.findings;
  std::string text = format("audit     {}: {} samples, in {}\n", core::printable(audited.data_dir),
                            count_text(findings.samples()), core::duration_text(audited.seconds));
  for (const data::SplitFindings& split : findings.splits) {
    text += format("split     {}: {} samples\n", split.name, count_text(split.samples));
  }
  text += "sizes     " + tallies_text(findings.sizes) + "\nkinds     " + tallies_text(findings.kinds) + "\n";
  if (!findings.is_numeric_task) text += class_table(findings);
  text +=
      format("corrupt   {}\n", findings.bad.empty() ? "none" : count_text(static_cast<int64_t>(findings.bad.size())));
  for (size_t i = 0; i < std::min(kExamples, findings.bad.size()); ++i) {
    text += format("            {}: {}\n", audited.name_of(findings.bad[i].at), audited.reason_of(findings.bad[i]));
  }
  text += more_text(findings.bad.size());
  text += format("one colour  {}\n",
                 findings.one_value.empty() ? "none" : count_text(static_cast<int64_t>(findings.one_value.size())));
  for (size_t i = 0; i < std::min(kExamples, findings.one_value.size()); ++i) {
    text += format("            {}\n", audited.name_of(findings.one_value[i]));
  }
  text += more_text(findings.one_value.size());
  text += findings.splits.size() < 2
              ? "same image in several splits: not checked, there is one split; with --val-fraction as in training\n"
                "            the held-out images are another\n"
              : groups_text(audited, "same image in several splits: ", [](const DuplicateGroup& group) {
                  return group.across_splits;
                });
  text += groups_text(
      audited, "same image with other labels: ", [](const DuplicateGroup& group) { return group.labels_differ; });
  text += groups_text(audited, "same image otherwise: ", [](const DuplicateGroup& group) {
    return !group.across_splits && !group.labels_differ;
  });
  return text + suspects_text(audited);
}

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
      sample["confidence"] = suspect.confidence;
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
    sample["reason"] = audited.reason_of(bad);
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
