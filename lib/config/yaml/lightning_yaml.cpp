// SPDX-License-Identifier: Apache-2.0
// Files of LightningCLI as options: sections with class_path and init_args, and torch's defaults where they differ.
#include <algorithm>
#include <array>
#include <cctype>

#include "config/yaml/foreign_yaml.h"
#include "core/format.h"

namespace stoker::config {
namespace {

using Kind = YamlNode::Kind;

bool is_one_of(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) { return text == word; });
}

bool is_lightning(const YamlNode& top) {
  for (const char* section : {"data", "model", "optimizer", "lr_scheduler"}) {
    const YamlNode* const value = yaml_value(top, section);
    if (value && value->kind == Kind::map && yaml_value(*value, "class_path")) return true;
  }
  return yaml_value(top, "trainer") && yaml_value(top, "trainer")->kind == Kind::map;
}

/// The last part of a.b.Name, in lower case.
std::string class_name(const YamlNode& section) {
  const YamlNode* const path = yaml_value(section, "class_path");
  std::string name = path ? path->text.substr(path->text.rfind('.') + 1) : "";
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

class LightningRewriter {
 public:
  LightningRewriter(const YamlNode& top, std::vector<YamlProblem>& problems, ForeignReport& report)
      : top_(top), problems_(problems), report_(report) {
    out_.kind = Kind::map;
    out_.line = top.line;
  }

  YamlNode rewritten() {
    each(top_, [this](const YamlNode& key, const YamlNode& value) {
      const bool is_section = value.kind == Kind::map;
      if (is_section && key.text == "data") {
        arguments(value, [this](const YamlNode& k, const YamlNode& v) { data(k, v); });
      } else if (is_section && key.text == "model") {
        arguments(value, [this](const YamlNode& k, const YamlNode& v) { model(k, v); });
      } else if (is_section && key.text == "optimizer") {
        optimizer(key.line, value);
      } else if (is_section && key.text == "lr_scheduler") {
        scheduler(key.line, value);
      } else if (is_section && key.text == "trainer") {
        each(value, [this](const YamlNode& k, const YamlNode& v) { trainer(k, v); });
      } else if (key.text == "ckpt_path") {
        if (!is_empty_value(value)) append_entry(out_, "resume", value);
      } else if (key.text == "seed_everything" && is_one_of(value.text, {"true", "false"})) {
        report_.without_work.push_back("seed_everything: " + value.text);  // any seed, chosen here
      } else {
        keep(key, value);
      }
    });
    for (const auto& [name, text, line] : defaults_) {
      if (!yaml_value(out_, name)) append_entry(out_, name, text, line);
    }
    return out_;
  }

 private:
  template <typename Visit>
  static void each(const YamlNode& map, Visit visit) {
    for (size_t i = 0; i + 1 < map.items.size(); i += 2) visit(map.items[i], map.items[i + 1]);
  }

  /// What stands in init_args, or beside class_path where there are none.
  template <typename Visit>
  void arguments(const YamlNode& section, Visit visit) {
    each(section, [&](const YamlNode& key, const YamlNode& value) {
      if (key.text == "class_path") {
        report_.without_work.push_back("class_path: " + value.text);
      } else if (key.text == "init_args" && value.kind == Kind::map) {
        each(value, visit);
      } else if (key.text != "init_args") {
        visit(key, value);
      }
    });
  }

  void keep(const YamlNode& key, const YamlNode& value) {
    out_.items.push_back(key);
    out_.items.push_back(value);
  }

  void data(const YamlNode& key, const YamlNode& value) {
    if (!is_empty_value(value)) keep(key, value);
  }

  void model(const YamlNode& key, const YamlNode& value) {
    if (is_empty_value(value)) return;
    if (is_one_of(key.text, {"model_name", "backbone", "name", "architecture", "net"})) {
      append_entry(out_, "model", value);
    } else if (key.text == "pretrained" && is_one_of(value.text, {"true", "false"})) {
      if (value.text == "true") {
        problem(key.line, "pretrained: no weights are downloaded here; write init_from: FILE");
      }
    } else {
      keep(key, value);
    }
  }

  void trainer(const YamlNode& key, const YamlNode& value) {
    const std::string& name = key.text;
    if (is_empty_value(value)) return;
    const bool is_off = is_one_of(value.text, {"false", "0", "0.0", "auto"});
    if (is_one_of(name, {"logger", "callbacks", "strategy", "enable_checkpointing", "enable_model_summary",
                         "num_sanity_val_steps", "benchmark", "inference_mode", "use_distributed_sampler", "profiler",
                         "default_root_dir", "reload_dataloaders_every_n_epochs", "detect_anomaly", "barebones"})) {
      if (!is_off) report_.without_work.push_back("trainer." + name);
    } else if (name == "gradient_clip_algorithm") {
      append_entry(out_, "clip_mode", value);
    } else if ((name == "devices" && is_one_of(value.text, {"auto", "-1"})) ||
               (name == "num_nodes" && value.text == "1") || (name == "max_steps" && value.text == "-1")) {
      return;
    } else if (is_one_of(name, {"fast_dev_run", "overfit_batches", "sync_batchnorm"}) && is_off) {
      return;
    } else if (is_one_of(name,
                         {"limit_train_batches", "limit_val_batches", "limit_test_batches", "val_check_interval"}) &&
               is_one_of(value.text, {"1.0"})) {
      return;
    } else {
      keep(key, value);
    }
  }

  void optimizer(int line, const YamlNode& section) {
    const std::string name = class_name(section);
    append_entry(out_, "opt", name, line);
    default_to("weight_decay", name == "adamw" ? "0.01" : "0", line);
    default_to("decay_norm_and_bias", "true", line);
    default_to("lr", "0.001", line);
    if (name == "sgd") {
      default_to("momentum", "0", line);
      default_to("nesterov", "false", line);
    }
    const YamlNode* const values = yaml_value(section, "init_args");
    each(values ? *values : YamlNode(), [&](const YamlNode& key, const YamlNode& value) {
      if (is_empty_value(value)) return;
      if (key.text == "betas" && value.kind == Kind::list && value.items.size() == 2) {
        append_entry(out_, "beta1", value.items[0]);
        append_entry(out_, "beta2", value.items[1]);
      } else if (is_one_of(key.text, {"foreach", "fused", "capturable"})) {
        report_.without_work.push_back("optimizer." + key.text);
      } else if (is_one_of(key.text, {"amsgrad", "maximize", "differentiable", "dampening"})) {
        if (!is_one_of(value.text, {"false", "0", "0.0"}))
          problem(key.line, key.text + ": there is no such option here");
      } else {
        keep(key, value);
      }
    });
  }

  void scheduler(int line, const YamlNode& section) {
    const std::string name = class_name(section);
    const std::vector<std::array<const char*, 3>> known = {
        {"cosineannealinglr", "T_max", ""},
        {"cosineannealinglr", "eta_min", "min_lr"},
        {"steplr", "step_size", "decay_epochs"},
        {"steplr", "gamma", "decay_rate"},
        {"multisteplr", "milestones", "decay_milestones"},
        {"multisteplr", "gamma", "decay_rate"},
        {"onecyclelr", "max_lr", "lr"},
        {"onecyclelr", "pct_start", "one_cycle_pct_start"},
        {"onecyclelr", "div_factor", "one_cycle_div_factor"},
        {"onecyclelr", "final_div_factor", "one_cycle_final_div_factor"}};
    const std::vector<std::pair<std::string, std::string>> kinds = {
        {"cosineannealinglr", "cosine"}, {"steplr", "step"}, {"multisteplr", "multistep"}, {"onecyclelr", "one-cycle"}};
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.first == name; });
    if (kind == kinds.end()) {
      problem(line, "lr_scheduler: takes CosineAnnealingLR, StepLR, MultiStepLR or OneCycleLR");
      return;
    }
    append_entry(out_, "sched", kind->second, line);
    default_to("warmup_epochs", "0", line);
    if (name == "steplr" || name == "multisteplr") default_to("decay_rate", "0.1", line);
    if (name == "cosineannealinglr") default_to("min_lr", "0", line);
    const YamlNode* const values = yaml_value(section, "init_args");
    each(values ? *values : YamlNode(), [&](const YamlNode& key, const YamlNode& value) {
      if (is_empty_value(value) || key.text == "last_epoch" || key.text == "verbose") return;
      const auto row =
          std::find_if(known.begin(), known.end(), [&](const auto& k) { return name == k[0] && key.text == k[1]; });
      if (row == known.end()) {
        problem(key.line, "lr_scheduler: there is no " + key.text + " here");
      } else if (key.text == "T_max") {
        period(key.line, value.text);
      } else {
        append_entry(out_, (*row)[2], value);
      }
    });
  }

  /// A cosine ends with the run here: T_max can only be the number of epochs.
  void period(int line, const std::string& epochs) {
    const YamlNode* const trainer = yaml_value(top_, "trainer");
    const YamlNode* const length = trainer && trainer->kind == Kind::map ? yaml_value(*trainer, "max_epochs") : nullptr;
    if (!length) {
      default_to("epochs", epochs, line);
    } else if (length->text != epochs) {
      problem(line, core::format("T_max: is {}, but max_epochs is {}: cosine ends with the run here, so give both the "
                                 "same number",
                                 epochs, length->text));
    }
  }

  void default_to(const char* name, const std::string& text, int line) { defaults_.push_back({name, text, line}); }
  void problem(int line, std::string text) { problems_.push_back({line, std::move(text)}); }

  struct Default {
    std::string name, text;
    int line;
  };

  const YamlNode& top_;
  std::vector<YamlProblem>& problems_;
  ForeignReport& report_;
  YamlNode out_;
  std::vector<Default> defaults_;  ///< torch's, for what the file does not say
};

}  // namespace

bool rewrite_lightning(YamlNode& top, std::vector<YamlProblem>& problems, ForeignReport& report) {
  if (top.kind != Kind::map || !is_lightning(top)) return false;
  YamlNode rewritten = LightningRewriter(top, problems, report).rewritten();
  top = std::move(rewritten);
  return true;
}

}  // namespace stoker::config
