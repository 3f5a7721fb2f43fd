// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "config/table/parse_value.h"
#include "core/format.h"

namespace stoker::config {
namespace {

constexpr size_t kMaxDepth = 8;

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

/// Collects the events of one document into a tree.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<YamlProblem>& problems) : problems_(problems) {}

  /// The document, with containers that a syntax error left open closed.
  YamlNode take() {
    while (!open_.empty()) close();
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override { root_.line = line_of(mark); }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(node(YamlNode::Kind::null, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    problems_.push_back({line_of(mark), "aliases (*name) are not supported; write the value out"});
    YamlNode alias = node(YamlNode::Kind::null, mark);
    alias.refused = true;
    add(std::move(alias));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    YamlNode scalar = node(YamlNode::Kind::scalar, mark);
    scalar.text = value;
    scalar.quoted = tag == "!";
    add(std::move(scalar));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  static YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) {
    YamlNode made;
    made.kind = kind;
    made.line = line_of(mark);
    return made;
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0) problems_.push_back({line_of(mark), "anchors (&name) are not supported; write the value out"});
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    problems_.push_back({line_of(mark), "tags (" + shown(tag) + ") are not supported"});
  }
  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() >= kMaxDepth) throw YAML::ParserException(mark, "nested too deeply");
    open_.push_back(node(kind, mark));
  }
  void close() {
    YamlNode done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done));
  }
  void add(YamlNode done) {
    if (open_.empty()) {
      root_ = std::move(done);
    } else {
      open_.back().items.push_back(std::move(done));
    }
  }

  std::vector<YamlProblem>& problems_;
  std::vector<YamlNode> open_;
  YamlNode root_;
};

/// Refuses what yaml-cpp would guess at: other encodings, NUL and control characters.
bool check_bytes(const std::string& text, std::vector<YamlProblem>& problems) {
  if (text.size() > kMaxYamlBytes) {
    problems.push_back({1, core::format("has {}, more than the limit of {}", core::bytes_text(double(text.size())),
                                        core::bytes_text(double(kMaxYamlBytes)))});
    return false;
  }
  int line = 1;
  for (const char c : text) {
    if (c == '\n') ++line;
    const auto byte = static_cast<unsigned char>(c);
    const bool allowed = byte >= 0x20 ? byte != 0x7F : c == '\n' || c == '\r' || c == '\t';
    if (allowed) continue;
    problems.push_back({line, core::format("holds the control character 0x{:02x}; only UTF-8 text is read", byte)});
    return false;
  }
  if (is_utf8(text)) return true;
  problems.push_back({1, "is not UTF-8 text"});
  return false;
}

/// Tabs that indent lines, which yaml-cpp reports in words of its grammar, or at another line. False: there are none.
bool explain_tabs(const std::string& text, std::vector<YamlProblem>& problems) {
  std::vector<YamlProblem> found;
  int line = 1;
  for (size_t begin = 0; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const size_t content = std::min(text.find_first_not_of(" \t\r", begin), end);
    if (content < end && text.find('\t', begin) < content) {
      found.push_back({line, "not valid YAML: a tab indents this line; write spaces"});
    }
    begin = end + 1;
  }
  if (found.empty()) return false;
  problems = std::move(found);
  return true;
}

}  // namespace

YamlNode parse_yaml(const std::string& text, std::vector<YamlProblem>& problems) {
  if (!check_bytes(text, problems)) return {};
  TreeBuilder builder(problems);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      problems.push_back({1, "is empty; it should hold at least one option, such as `epochs: 10`"});
      return {};
    }
    std::vector<YamlProblem> ignored;
    TreeBuilder second(ignored);
    if (parser.HandleNextDocument(second)) {
      problems.push_back({second.take().line, "begins a second document; one file holds one"});
    }
  } catch (const YAML::Exception& error) {
    problems.push_back({line_of(error.mark), "not valid YAML: " + error.msg});
    if (explain_tabs(text, problems)) return {};
  } catch (const std::exception& error) {
    problems.push_back({1, std::string("not valid YAML: ") + error.what()});
  }
  return builder.take();
}

}  // namespace stoker::config
