// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/foreign_yaml.h"

#include <algorithm>
#include <cmath>

#include "config/table/foreign_words.h"
#include "config/table/parse_value.h"
#include "core/format.h"

namespace stoker::config {

YamlNode yaml_scalar(const std::string& text, int line) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.line = line;
  return node;
}

YamlNode yaml_words(const std::string& text, int line) {
  if (text.find(',') == std::string::npos) return yaml_scalar(text, line);
  YamlNode list;
  list.kind = YamlNode::Kind::list;
  list.line = line;
  for (const std::string& word : split_words(text, ',')) list.items.push_back(yaml_scalar(word, line));
  return list;
}

void append_entry(YamlNode& map, const std::string& key, const YamlNode& value) {
  map.items.push_back(yaml_scalar(key, value.line));
  map.items.push_back(value);
}

namespace {

using Kind = YamlNode::Kind;

/// null, '', [] and {}.
bool is_empty(const YamlNode& value) {
  return !value.refused && (value.kind == Kind::scalar ? value.text.empty() : value.items.empty());
}

/// The value of a key of a map; nullptr where it has none, or an empty one.
const YamlNode* value_of(const YamlNode& map, const std::string& key) {
  for (size_t i = 0; map.kind == Kind::map && i + 1 < map.items.size(); i += 2) {
    if (map.items[i].text == key) return is_empty(map.items[i + 1]) ? nullptr : &map.items[i + 1];
  }
  return nullptr;
}

const ForeignOption* find_word(const std::vector<ForeignOption>& words, const std::string& name) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const ForeignOption& word) { return word.name == name; });
  return found == words.end() ? nullptr : &*found;
}

/// A file with this many keys that no option has is one of timm's.
bool is_timm(const YamlNode& top) {
  constexpr int kEnoughKeys = 4;
  int keys = 0;
  for (size_t i = 0; i + 1 < top.items.size(); i += 2) {
    const ForeignOption* const word = find_word(timm_keys(), kebab(top.items[i].text));
    const std::string ours = word ? word->ours : "";
    if (ours == "*=" || ours[0] == '-' || ours == "@policy" || ours == "betas") ++keys;
  }
  return keys >= kEnoughKeys;
}

bool is_lightning(const YamlNode& top) {
  for (const char* const section : {"data", "model", "optimizer", "lr_scheduler"}) {
    const YamlNode* const value = value_of(top, section);
    if (value && value_of(*value, "class_path")) return true;
  }
  const YamlNode* const trainer = value_of(top, "trainer");
  return trainer && trainer->kind == Kind::map;
}

class Rewriter {
 public:
  Rewriter(const YamlNode& top, const std::vector<ForeignOption>& words, std::vector<YamlProblem>& problems,
           std::vector<std::string>& notes)
      : top_(top), words_(words), problems_(problems), notes_(notes) {
    out_.kind = Kind::map;
    out_.line = top.line;
  }

  YamlNode timm() {
    read_section("timm", "", top_);
    return finish();
  }

  YamlNode lightning() {
    each(top_, [this](const YamlNode& key, const YamlNode& value) {
      const std::string name = kebab(key.text);
      const bool has_class = name == "optimizer" || name == "lr-scheduler";
      const bool is_section = has_class || name == "data" || name == "model" || name == "trainer";
      if (!is_section || value.kind != Kind::map) return take("", key, value);
      const YamlNode* const path = value_of(value, "class_path");
      const std::string type = core::lower_case(path ? path->text.substr(path->text.rfind('.') + 1) : "");
      const std::string section = has_class ? name + "." + type : name;
      if (path && !has_class) without_effect_.push_back("class_path: " + path->text);
      if (name == "optimizer") set("opt", type, key.line);
      if (name == "lr-scheduler") {
        const ForeignOption* const schedule = find_word(words_, section);
        if (!schedule)
          return problem(key.line, "lr_scheduler: takes CosineAnnealingLR, StepLR, MultiStepLR or OneCycleLR");
        set("sched", schedule->ours, key.line);
      }
      const YamlNode* const arguments = value_of(value, "init_args");
      read_section(section, section, arguments && arguments->kind == Kind::map ? *arguments : value);
    });
    return finish();
  }

 private:
  template <typename Visit>
  static void each(const YamlNode& map, Visit visit) {
    for (size_t i = 0; i + 1 < map.items.size(); i += 2) visit(map.items[i], map.items[i + 1]);
  }

  void read_section(const std::string& name, const std::string& prefix, const YamlNode& map) {
    sections_.emplace_back(name, map.line);
    siblings_ = &map;
    each(map, [&](const YamlNode& key, const YamlNode& value) {
      if (key.text != "class_path" && key.text != "init_args") take(prefix, key, value);
    });
  }

  void take(const std::string& section, const YamlNode& key, const YamlNode& value) {
    if (is_empty(value)) return;
    const std::string plain = section.substr(0, section.find('.')), name = kebab(key.text);
    const ForeignOption* word = find_word(words_, section.empty() ? name : section + "." + name);
    if (!word) word = find_word(words_, plain + "." + name);
    if (!word) {
      out_.items.insert(out_.items.end(), {key, value});
      return;
    }
    const std::string ours = word->ours, note = word->note;
    if (ours.empty() || !holds(word->when)) return;
    if (ours[0] == '@') return convert(ours.substr(1), key, value);
    if (ours.find('=') == std::string::npos) return append_entry(out_, ours, value);
    for (const ForeignCase& one : cases_of(*word)) {
      const auto fits = [&](const std::string& pattern) {
        return pattern == "*" || (value.kind == Kind::scalar && fits_pattern(pattern, value.text));
      };
      const auto fitting = std::find_if(one.patterns.begin(), one.patterns.end(), fits);
      if (fitting == one.patterns.end()) continue;
      for (const auto& [option, text] : one.values) {
        if (option == "!") return problem(key.line, key.text + ": " + note);
        append_entry(out_, option, text == "*" ? value : yaml_scalar(filled_in(text, value.text), key.line));
      }
      if (!one.values.empty() || *fitting != "*" || fits("-")) return;
      if (note.empty()) return without_effect_.push_back((plain.empty() ? "" : plain + ".") + key.text);
      return notes_.push_back(core::format("{}: {}: {}", key.text, value.text, note));
    }
    problem(key.line, core::format("{}: there is no such option here{}", key.text, note.empty() ? "" : "; " + note));
  }

  bool holds(const std::string& condition) const {
    if (condition.empty()) return true;
    const size_t equals = condition.find('=');
    const YamlNode* const value = value_of(*siblings_, condition.substr(0, equals));
    if (equals == std::string::npos || !value) return value != nullptr;
    const std::vector<std::string> words = split_words(condition.substr(equals + 1), '|');
    return std::find(words.begin(), words.end(), value->text) != words.end();
  }

  std::string text_of(const std::string& key, const std::string& otherwise = "") const {
    const YamlNode* const value = value_of(*siblings_, key);
    return value ? value->text : otherwise;
  }

  double number_of(const std::string& key, double otherwise) const {
    double number = otherwise;
    return read_number(text_of(key), {0, 1e9, true, false}, number).empty() ? number : otherwise;
  }

  void set(const std::string& option, const std::string& text, int line) {
    append_entry(out_, option, yaml_words(text, line));
  }

  /// Options that need more than one key, or arithmetic.
  void convert(const std::string& conversion, const YamlNode& key, const YamlNode& value) {
    const std::string& text = value.text;
    const int line = key.line;
    if (conversion == "policy") {
      if (text.rfind("rand-", 0) == 0) {
        notes_.push_back("aa: " + text + " is taken with its number and strength; the rest of it has no effect");
      }
      append_entry(out_, "auto-augment", value);
    } else if (conversion == "amp") {  // timm's is float16, unless amp_dtype sets another
      const std::string type = text_of("amp_dtype", "float16");
      const bool cannot = type == "float16" && text_of("device") == "cpu";
      if (text == "true" && cannot) notes_.push_back("amp is float16 in timm, which a CPU does not compute: amp auto");
      set("amp", text != "true" ? text : cannot ? "auto" : type, line);
    } else if (conversion == "bce") {
      const std::string threshold = text_of("bce_target_thresh");
      if (text == "true") set("loss", threshold.empty() ? "bce" : "bce," + threshold, line);
    } else if (conversion == "color-jitter") {  // a policy takes its place in timm
      if (!text_of("aa").empty() || (value.kind == Kind::scalar && fits_pattern("-", text))) return;
      std::string all = text;
      for (const YamlNode& item : value.items) all += (all.empty() ? "" : ",") + item.text;
      const std::string share = text_of("color_jitter_prob");
      set("color-jitter", all + (share.empty() ? "" : ",p" + share), line);
    } else if (conversion == "input-size") {
      const auto& items = value.items;
      if (value.kind != Kind::list || items.size() != 3) {
        return problem(line, "input_size: takes channels, height and width: [3, 224, 224]");
      }
      if (text_of("in_chans").empty()) append_entry(out_, "in-chans", items[0]);
      if (text_of("img_size").empty()) {
        const bool is_square = items[1].text == items[2].text;
        set("img-size", items[1].text + (is_square ? "" : "," + items[2].text), line);
      }
    } else if (conversion == "lr") {
      learning_rate(line);
    } else if (conversion == "model") {  // resnet18.a1_in1k is resnet18 with weights of that name
      set("model", text.substr(0, text.find('.')), line);
    } else if (conversion == "pretrained") {  // the tag of the network names them
      const bool is_named = !text_of("initial_checkpoint").empty() || !text_of("pretrained_path").empty();
      if (text != "true" || is_named) return;
      const std::string model = text_of("model");
      set("init-from", model.find('.') == std::string::npos ? kDefaultWeights : model, line);
    } else if (conversion == "run-dir") {  // train.py writes into output/experiment
      const std::string output = text_of("output"), experiment = text_of("experiment");
      if (key.text == "experiment" && !output.empty()) return;
      set("run-dir", experiment.empty() ? output : (output.empty() ? "runs" : output) + "/" + experiment, line);
    } else if (conversion == "period") {
      period(line, text);
    } else if (conversion == "one-cycle") {
      if (value_of(out_, "one-cycle")) return;
      set("one-cycle",
          text_of("pct_start", "0.3") + "," + text_of("div_factor", "25") + "," + text_of("final_div_factor", "10000"),
          line);
    }
  }

  /// A null lr is lr_base x images of an update / lr_base_size, or times the root of that share for Adam-type
  /// optimizers.
  void learning_rate(int line) {
    if (!text_of("lr").empty()) return;
    const std::string optimizer = text_of("opt");
    const bool is_adaptive = optimizer.find("ada") != std::string::npos || optimizer.find("lamb") != std::string::npos;
    const std::string scale = text_of("lr_base_scale", is_adaptive ? "sqrt" : "linear");
    const double share =
        number_of("batch_size", 128) * number_of("grad_accum_steps", 1) / number_of("lr_base_size", 256);
    const double rate = number_of("lr_base", 0.1) * (scale == "sqrt" ? std::sqrt(share) : share);
    set("lr", number_text(rate), line);
    notes_.push_back(core::format("lr is {}: lr_base {}, scaled ({}) by the images of an update on one device",
                                  number_text(rate), text_of("lr_base"), scale));
  }

  /// A cosine ends with the run here: T_max can only be the number of epochs.
  void period(int line, const std::string& epochs) {
    const YamlNode* const trainer = value_of(top_, "trainer");
    const YamlNode* const length = trainer ? value_of(*trainer, "max_epochs") : nullptr;
    if (!length) return set("epochs", epochs, line);
    if (length->text == epochs) return;
    problem(line, core::format("T_max: is {}, but max_epochs is {}: cosine ends with the run here, so give both the "
                               "same number",
                               epochs, length->text));
  }

  /// Their defaults, for what the file does not set.
  YamlNode finish() {
    for (const auto& [section, line] : sections_) {
      for (const ForeignDefault& usual : foreign_defaults()) {
        const std::string of = usual.section;
        if (section != of && section.rfind(of + ".", 0) != 0) continue;
        bool is_set = false;
        each(out_, [&](const YamlNode& key, const YamlNode&) { is_set = is_set || kebab(key.text) == usual.option; });
        if (!is_set) set(usual.option, usual.text, line);
      }
    }
    if (!without_effect_.empty()) {
      std::string names;
      for (const std::string& name : without_effect_) names += (names.empty() ? "" : ", ") + core::printable(name);
      notes_.push_back("accepted and ignored: " + names);
    }
    return out_;
  }

  void problem(int line, std::string text) { problems_.push_back({line, std::move(text)}); }

  const YamlNode& top_;
  const std::vector<ForeignOption>& words_;
  std::vector<YamlProblem>& problems_;
  std::vector<std::string>& notes_;
  std::vector<std::pair<std::string, int>> sections_;
  const YamlNode* siblings_ = nullptr;  ///< the map that is being read
  std::vector<std::string> without_effect_;
  YamlNode out_;
};

}  // namespace

void rewrite_foreign(YamlNode& top, std::vector<YamlProblem>& problems, std::vector<std::string>& notes) {
  if (top.kind != Kind::map) return;
  if (is_lightning(top)) {
    top = YamlNode(Rewriter(top, lightning_keys(), problems, notes).lightning());
  } else if (is_timm(top)) {
    top = YamlNode(Rewriter(top, timm_keys(), problems, notes).timm());
  }
}

}  // namespace stoker::config
