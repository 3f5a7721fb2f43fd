// SPDX-License-Identifier: Apache-2.0
#include "core/text/json.h"

#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/format.h"

namespace stoker::core {
namespace {

/// Builds a value from the events of nlohmann's parser. Its own builder looks for every key among all keys before it,
/// and goes over the whole parent after every object; this one takes n log n time for n keys.
class Builder {
 public:
  Builder(const std::string& what, int max_depth) : what_(what), max_depth_(static_cast<size_t>(max_depth)) {}

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& value) { return add(std::move(value)); }

  bool start_object(size_t) {
    open_.push_back({add_value(Json::object()), {}});
    return true;
  }
  bool key(std::string& name) {
    check_depth();
    if (!open_.back().keys.insert(name).second) {
      throw Error(ErrorKind::data, format("{}: duplicate JSON key {}", what_, printable(name)));
    }
    key_ = std::move(name);
    return true;
  }
  bool end_object() { return end(); }
  bool start_array(size_t) {
    open_.push_back({add_value(Json::array()), {}});
    return true;
  }
  bool end_array() { return end(); }
  bool parse_error(size_t, const std::string&, const Json::exception& error) {
    throw Error(ErrorKind::data, format("{}: not valid JSON: {}", what_, problem_text(error)));
  }

 private:
  struct Open {
    Json* value;  ///< stays in place: nothing is added to its parent before it ends
    std::set<std::string> keys;
  };

  void check_depth() const {
    if (open_.size() < max_depth_) return;
    throw Error(ErrorKind::data, format("{}: JSON nested deeper than {} levels", what_, max_depth_));
  }

  template <typename Value>
  bool add(Value&& value) {
    add_value(std::forward<Value>(value));
    return true;
  }

  Json* add_value(Json value) {
    check_depth();
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    // The container under the map: the map's own insertion would look for the key, which is new.
    Json::object_t::Container& fields = parent.get_ref<Json::object_t&>();
    fields.emplace_back(std::move(key_), std::move(value));
    return &fields.back().second;
  }

  bool end() {
    open_.pop_back();
    return true;
  }

  const std::string& what_;
  size_t max_depth_;
  Json root_;
  std::string key_;  ///< key of the value that comes next
  std::vector<Open> open_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& what, int max_depth) {
  Builder builder(what, max_depth);
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string problem_text(const Json::exception& error) {
  const std::string_view text = error.what();  // "[json.exception.out_of_range.403] key 'height' not found"
  const size_t end = text.rfind("[json.", 0) == 0 ? text.find("] ") : std::string_view::npos;
  return printable(end == std::string_view::npos ? text : text.substr(end + 2));
}

std::string json_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string json_page(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stoker::core
