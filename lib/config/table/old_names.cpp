// SPDX-License-Identifier: Apache-2.0
#include "config/table/old_names.h"

#include <algorithm>

#include "config/table/parse_value.h"
#include "config/table/table.h"

namespace stoker::config {
namespace {

using Texts = std::vector<std::string>;

std::string with_commas(const Texts& parts) {
  std::string text = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) text += "," + parts[i];
  return text;
}

std::string amp_of(const Texts& old) { return old[0] == "true" && old[1] != "auto" ? old[1] : old[0]; }

std::string policy_of(const Texts& old) {
  const Texts rand = split_words(old[0], ',');
  double strength = 0;
  if (old[1] == "true") return "ta-wide";
  if (rand.size() != 2 || !read_number(rand[1], {0, 30}, strength).empty()) return "none";
  return "rand-m" + number_text(strength / 3) + "-n" + rand[0];
}

std::string jitter_of(const Texts& old) { return old[0] == "none" || old[1] == "1" ? old[0] : old[0] + ",p" + old[1]; }

std::string cycle_of(const Texts& old) { return old[0] == "false" ? "off" : old[1] + "," + old[2]; }

struct OldOption {
  const char* name;
  const char* usual;  ///< what a run did that does not name it
};

struct Merged {
  const char* now;  ///< "": gone, and `example` is what to do
  const char* example;
  std::vector<OldOption> old;  ///< one may have today's name
  std::string (*text)(const Texts& old) = with_commas;
};

const std::vector<Merged>& merged_options() {
  static const std::vector<Merged> all = {
      {"amp", "bfloat16", {{"amp", "auto"}, {"amp-dtype", "auto"}}, amp_of},
      {"auto-augment",
       "ra or rand-m9-n2 or ta-wide",
       {{"rand-augment", "none"}, {"trivial-augment", "false"}},
       policy_of},
      {"scale", "0.08,1", {{"scale-min", "0.08"}, {"scale-max", "1"}}},
      {"ratio", "0.75,1.33", {{"ratio-min", "0.75"}, {"ratio-max", "1.3333333333333333"}}},
      {"color-jitter", "0.4,0.4,0.4,0.1,p0.8", {{"color-jitter", "none"}, {"color-jitter-prob", "1"}}, jitter_of},
      {"gaussian-blur",
       "0.5,23,0.1,2",
       {{"gaussian-blur", "0"},
        {"gaussian-blur-kernel", "23"},
        {"gaussian-blur-sigma-min", "0.1"},
        {"gaussian-blur-sigma-max", "2"}}},
      {"gaussian-noise", "0.05,0.5", {{"gaussian-noise", "0"}, {"gaussian-noise-prob", "1"}}},
      {"freq-mask", "2,8", {{"freq-masks", "0"}, {"freq-mask-param", "8"}}},
      {"time-mask", "2,8", {{"time-masks", "0"}, {"time-mask-param", "8"}}},
      {"frame-sampling", "stride,2", {{"frame-sampling", "uniform"}, {"frame-stride", "1"}}},
      {"hdf5", "train/x,train/y", {{"hdf5-input", ""}, {"hdf5-label", ""}}},
      {"on-bad-image", "skip,10", {{"on-bad-image", "fail"}, {"max-bad", "10"}}},
      {"pose-head",
       "binned,66,99,1",
       {{"pose-head", "direct"}, {"pose-bins", "66"}, {"pose-range", "99"}, {"pose-loss-weight", "1"}}},
      {"betas", "0.9,0.999", {{"beta1", "0.9"}, {"beta2", "0.999"}}},
      {"one-cycle",
       "0.3,25,10000",
       {{"one-cycle-pct-start", "0.3"}, {"one-cycle-div-factor", "25"}, {"one-cycle-final-div-factor", "10000"}}},
      {"one-cycle-momentum",
       "0.85,0.95 or off",
       {{"one-cycle-momentum", "false"}, {"one-cycle-base-momentum", "0.85"}, {"one-cycle-max-momentum", "0.95"}},
       cycle_of},
      {"patience", "10,0.001", {{"patience", "0"}, {"min-delta", "0"}}},
      {"loss-scale", "65536,2000", {{"init-scale", "65536"}, {"scale-growth-interval", "2000"}}},
      {"", "leave it out: convolutions of float32 are LibTorch's, which rounds otherwise", {{"winograd", "false"}}},
      {"", "leave it out: --devices N computes N replicas at once", {{"lanes", "1"}}}};
  return all;
}

}  // namespace

std::string answer_to_old_name(const std::string& name, bool is_flag) {
  const std::string wanted = kebab(name), plain = wanted.rfind("no-", 0) == 0 ? wanted.substr(3) : wanted;
  for (const Merged& merged : merged_options()) {
    const std::string now = merged.now;
    for (const OldOption& old : merged.old) {
      if (old.name != wanted && old.name != plain) continue;
      if (now.empty()) return std::string("was removed; ") + merged.example;
      return "was renamed: write " + (is_flag ? "--" + now + " " : now + ": ") + merged.example;
    }
  }
  return "";
}

std::vector<RenamedOption> renamed_options(const OptionTexts& texts) {
  std::vector<RenamedOption> renamed;
  for (const Merged& merged : merged_options()) {
    RenamedOption option;
    Texts parts;
    bool is_old = false;
    for (const OldOption& old : merged.old) {
      const auto found = texts.find(old.name);
      parts.push_back(found == texts.end() ? old.usual : found->second);
      if (found == texts.end()) continue;
      option.old.push_back(old.name);
      is_old = is_old || std::string(old.name) != merged.now;
    }
    if (!is_old) continue;
    option.now = merged.now;
    option.text = merged.text(parts);
    renamed.push_back(std::move(option));
  }
  return renamed;
}

OptionTexts in_todays_words(OptionTexts texts) {
  for (const RenamedOption& option : renamed_options(texts)) {
    for (const std::string& name : option.old) texts.erase(name);
    if (!option.now.empty()) texts[option.now] = option.text;
  }
  Options options;
  Table table(options);
  for (auto& [name, text] : texts) {
    Row* const row = table.find(name);
    if (row && row->assign(text).empty()) text = row->render();
  }
  return texts;
}

}  // namespace stoker::config
