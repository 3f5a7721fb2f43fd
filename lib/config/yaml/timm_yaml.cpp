// SPDX-License-Identifier: Apache-2.0
// The args.yaml that timm's train.py writes, as options. Names, defaults and meanings are those of train.py of timm 0.6
// to 1.0 (github.com/huggingface/pytorch-image-models).
#include <algorithm>
#include <array>
#include <cmath>

#include "config/table/parse_value.h"
#include "config/yaml/foreign_yaml.h"
#include "config/yaml/timm_keys.h"
#include "core/format.h"

namespace stoker::config {
namespace {

using Kind = YamlNode::Kind;

/// Keys whose option has another name here; the others have theirs.
constexpr std::array<std::array<const char*, 2>, 6> kRenamed = {{{"initial_checkpoint", "init_from"},
                                                                 {"pretrained_path", "init_from"},
                                                                 {"opt_eps", "eps"},
                                                                 {"validation_batch_size", "val_batch_size"},
                                                                 {"grayscale_prob", "grayscale"},
                                                                 {"gaussian_blur_prob", "gaussian_blur"}}};

/// A file with so many keys that no option has is one of timm's.
constexpr int kEnoughKeys = 4;

bool is_timm(const YamlNode& top) {
  int keys = 0;
  for (size_t i = 0; i + 1 < top.items.size(); i += 2) {
    const std::string& name = top.items[i].text;
    if (name == "aa" || name == "opt_betas" || only_off(name) || is_without_work(name)) ++keys;
  }
  return keys >= kEnoughKeys;
}

class TimmRewriter {
 public:
  TimmRewriter(const YamlNode& top, std::vector<YamlProblem>& problems, ForeignReport& report)
      : top_(top), problems_(problems), report_(report) {
    out_.kind = Kind::map;
    out_.line = top.line;
  }

  YamlNode rewritten() {
    for (size_t i = 0; i + 1 < top_.items.size(); i += 2) {
      const YamlNode& key = top_.items[i];
      const YamlNode& value = top_.items[i + 1];
      if (const OnlyAs* only = only_off(key.text)) {
        refuse_unless_off(*only, key, value);
      } else if (is_without_work(key.text)) {
        if (!is_off_value(value)) report_.without_work.push_back(key.text);
      } else if (!is_empty_value(value) && !changed(key, value)) {
        append_entry(out_, name_of(key.text), value);
      }
    }
    learning_rate();
    run_directory();
    // timm's train.py cuts so whatever the size, and a null drop_path is none.
    if (!given("train_crop_mode")) append_entry(out_, "train_crop", "random-resized", top_.line);
    if (!given("drop_path")) append_entry(out_, "drop_path", "0", top_.line);
    return out_;
  }

 private:
  static std::string name_of(const std::string& theirs) {
    for (const auto& [name, ours] : kRenamed) {
      if (theirs == name) return ours;
    }
    return theirs;
  }

  const YamlNode* given(const std::string& name) const {
    const YamlNode* const value = yaml_value(top_, name);
    return value && !is_empty_value(*value) ? value : nullptr;
  }
  bool is(const std::string& name, const std::string& text) const {
    const YamlNode* const value = given(name);
    return value && value->text == text;
  }

  void refuse_unless_off(const OnlyAs& only, const YamlNode& key, const YamlNode& value) {
    const std::string off = only.off;
    if (is_off_value(value) || value.text == off || value.text == off + ".0") return;
    const std::string advice = only.advice;
    problem(key.line,
            core::format("{}: there is no such option here{}", key.text, advice.empty() ? "" : "; " + advice));
  }

  /// Whether the entry was written in another way, or left out.
  bool changed(const YamlNode& key, const YamlNode& value) {
    const std::string& name = key.text;
    const std::string& text = value.text;
    if (name == "opt_betas") return pair(key, value, "beta1", "beta2");
    if (name == "scale") return pair(key, value, "scale_min", "scale_max");
    if (name == "ratio") return pair(key, value, "ratio_min", "ratio_max");
    if (name == "input_size") return input_size(key, value);
    if (name == "color_jitter") return color_jitter(value);
    if (name == "amp") return mixed_precision(key, value);
    if (name == "amp_dtype") return true;  // told with amp
    if (name == "aa" && text.rfind("rand-", 0) == 0) {
      report_.notes.push_back(
          core::format("aa: {} is taken as rand-augment with its number and strength; the rest of "
                       "it has no effect",
                       text));
      return false;
    }
    if (name == "opt" && text == "momentum") {
      append_entry(out_, "opt", "sgd", key.line);
      append_entry(out_, "nesterov", "false", key.line);
      return true;
    }
    if (name == "sched" && text == "poly") {
      append_entry(out_, "sched", "polynomial", key.line);
      return true;
    }
    if (name == "pretrained") {
      if (text == "true") problem(key.line, "pretrained: no weights are downloaded here; write init_from: FILE");
      return true;
    }
    if (name == "model") {  // resnet18.a1_in1k is resnet18 with weights of that name
      append_entry(out_, "model", yaml_scalar(text.substr(0, text.find('.')), value.line));
      return true;
    }
    if (name == "cooldown_epochs" && !is_off_value(value)) {
      report_.notes.push_back(core::format("cooldown_epochs: {} is left out: the run ends after epochs", text));
    }
    return is_left_out(name, value);
  }

  /// What timm writes into each file, and means only beside something else.
  bool is_left_out(const std::string& name, const YamlNode& value) const {
    if (name == "val_split") return value.text == "validation";  // found by its usual names
    if (name == "train_crop_mode") return value.text == "rrc";
    if (name == "tta") return is_off_value(value);
    if (name == "clip_mode") return !given("clip_grad");
    if (name == "momentum") return !is("opt", "sgd") && !is("opt", "momentum");
    if (name == "decay_epochs") return !is("sched", "step");
    if (name == "decay_milestones") return !is("sched", "multistep");
    if (name == "decay_rate") return !is("sched", "step") && !is("sched", "multistep");
    if (name == "color_jitter_prob") return !given("color_jitter") || given("aa");
    return name == "lr_base" || name == "lr_base_size" || name == "lr_base_scale" || name == "warmup_prefix" ||
           name == "output" || name == "experiment" || name == "cooldown_epochs";
  }

  bool pair(const YamlNode& key, const YamlNode& value, const char* first, const char* second) {
    if (value.kind != Kind::list || value.items.size() != 2) {
      problem(key.line, key.text + ": takes a list of two numbers");
      return true;
    }
    append_entry(out_, first, value.items[0]);
    append_entry(out_, second, value.items[1]);
    return true;
  }

  bool input_size(const YamlNode& key, const YamlNode& value) {
    if (value.kind != Kind::list || value.items.size() != 3 || value.items[1].text != value.items[2].text) {
      problem(key.line,
              "input_size: takes channels, height and width, with height and width the same, as [3, 224, 224]");
      return true;
    }
    if (!given("in_chans")) append_entry(out_, "in_chans", value.items[0]);
    if (!given("img_size")) append_entry(out_, "img_size", value.items[1]);
    return true;
  }

  /// amp of timm is float16, unless amp_dtype says otherwise.
  bool mixed_precision(const YamlNode& key, const YamlNode& value) {
    if (value.text != "true") return false;
    if (is("amp_dtype", "bfloat16")) {
      append_entry(out_, "precision", "bf16-mixed", key.line);
    } else if (is("device", "cpu")) {
      report_.notes.push_back("amp is float16 in timm, which a CPU does not compute: amp auto instead");
    } else {
      append_entry(out_, "precision", "16-mixed", key.line);
    }
    return true;
  }

  /// One number for brightness, contrast and saturation; a policy takes its place in timm.
  bool color_jitter(const YamlNode& value) {
    if (is_off_value(value) || given("aa")) return true;
    YamlNode list = value;
    if (value.kind == Kind::scalar) {
      list = {};
      list.kind = Kind::list;
      list.line = value.line;
      list.items = {value};
    }
    append_entry(out_, "color_jitter", list);
    return true;
  }

  /// A null lr is lr_base x images of an update / lr_base_size, or times the root of that share for Adam and its like.
  void learning_rate() {
    const YamlNode* const base = given("lr_base");
    if (given("lr") || !base) return;
    const bool is_adaptive = given("opt") && given("opt")->text.find("ada") != std::string::npos;
    const std::string scale = given("lr_base_scale") ? given("lr_base_scale")->text : is_adaptive ? "sqrt" : "linear";
    const double images = number_of("batch_size", 128) * number_of("grad_accum_steps", 1);
    const double share = images / number_of("lr_base_size", 256);
    const double rate = number_of("lr_base", 0.1) * (scale == "sqrt" ? std::sqrt(share) : share);
    append_entry(out_, "lr", number_text(rate), base->line);
    report_.notes.push_back(core::format("lr is {}: lr_base {}, scaled ({}) by the images of an update on one device",
                                         number_text(rate), base->text, scale));
  }

  double number_of(const std::string& name, double otherwise) const {
    const YamlNode* const value = given(name);
    double number = otherwise;
    if (value && !read_number(value->text, {0, 1e9, true, false}, number).empty()) return otherwise;
    return number;
  }

  /// train.py writes into output/experiment.
  void run_directory() {
    const YamlNode* const output = given("output");
    const YamlNode* const experiment = given("experiment");
    if (!output && !experiment) return;
    const std::string parent = output ? output->text : "runs";
    append_entry(out_, "run_dir", experiment ? parent + "/" + experiment->text : parent,
                 (output ? output : experiment)->line);
  }

  void problem(int line, std::string text) { problems_.push_back({line, std::move(text)}); }

  const YamlNode& top_;
  std::vector<YamlProblem>& problems_;
  ForeignReport& report_;
  YamlNode out_;
};

}  // namespace

bool rewrite_timm(YamlNode& top, std::vector<YamlProblem>& problems, ForeignReport& report) {
  if (top.kind != Kind::map || !is_timm(top)) return false;
  YamlNode rewritten = TimmRewriter(top, problems, report).rewritten();
  top = std::move(rewritten);
  return true;
}

}  // namespace stoker::config
