// SPDX-License-Identifier: Apache-2.0
#include "data/archive/pickle_reader.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "core/format.h"
#include "data/archive/pickle_calls.h"
#include "data/storage/byte_reader.h"

namespace stoker::data {
namespace {

using core::format;
using core::printable;

constexpr uint64_t kMaxPickleValues = 1 << 19;  // a training checkpoint of a thousand parameters has some 60,000
constexpr uint64_t kMaxPickleItems = 4 << 20;   // of all containers together
constexpr size_t kLongestName = 200;            // of a module or a global

class PickleReader {
 public:
  PickleReader(std::string_view bytes, const std::string& what)
      : bytes_(bytes), view_(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), what_(what) {}

  PickleTree read(uint64_t& consumed) {
    while (!stopped_) step();
    consumed = at_;
    return std::move(tree_);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { here().refuse(reason); }
  PicklePlace here() const { return {what_, opcode_at_}; }

  /// The next `count` bytes.
  std::string_view take(uint64_t count) {
    if (!view_.has(at_, count)) fail("it is cut short");
    const std::string_view part = bytes_.substr(at_, count);
    at_ += count;
    return part;
  }
  uint64_t number(int bytes) {
    const std::string_view part = take(static_cast<uint64_t>(bytes));
    uint64_t value = 0;
    for (size_t i = part.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(part[i]);
    return value;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos || end - at_ > kLongestName) fail("a name has no end");
    const std::string_view text = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return text;
  }

  void count_items(size_t items) {
    items_ += items;
    if (items_ > kMaxPickleItems) fail(format("its containers have more than {} items", kMaxPickleItems));
  }
  void push(PickleValue value) {
    if (tree_.values.size() >= kMaxPickleValues) fail(format("it has more than {} values", kMaxPickleValues));
    count_items(value.items.size());
    stack_.push_back(static_cast<ValueIndex>(tree_.values.size()));
    tree_.values.push_back(std::move(value));
  }
  void push_text(ValueKind kind, uint64_t length) {
    PickleValue value;
    value.kind = kind;
    value.text = take(length);
    push(std::move(value));
  }
  void push_integer(int64_t integer, ValueKind kind = ValueKind::integer) {
    PickleValue value;
    value.kind = kind;
    value.integer = integer;
    push(std::move(value));
  }
  void push_items(ValueKind kind, std::vector<ValueIndex> items) {
    PickleValue value;
    value.kind = kind;
    value.items = std::move(items);
    push(std::move(value));
  }

  ValueIndex pop() {
    if (stack_.size() <= floor()) fail("its stack is empty");
    const ValueIndex top = stack_.back();
    stack_.pop_back();
    return top;
  }
  ValueIndex top() const {
    if (stack_.size() <= floor()) fail("its stack is empty");
    return stack_.back();
  }
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  /// Everything above the last mark, which goes.
  std::vector<ValueIndex> pop_mark() {
    if (marks_.empty()) fail("there is no mark");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<ValueIndex> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  std::vector<ValueIndex> pop_many(size_t count) {
    std::vector<ValueIndex> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }

  void put(uint64_t place) {
    if (place >= kMaxPickleValues) fail("its memo is too large");
    if (place >= memo_.size()) memo_.resize(place + 1);
    memo_[place] = top();
  }
  void get(uint64_t place) {
    if (place >= memo_.size() || !memo_[place]) fail(format("its memo has nothing at {}", place));
    stack_.push_back(*memo_[place]);
  }

  void push_global(std::string_view module, std::string_view name) {
    const KnownGlobal* known = find_global(module, name);
    if (known == nullptr) return push_opaque(module, name);
    PickleValue value;
    value.kind = ValueKind::global;
    value.role = known->role;
    value.number_type = known->type;
    push(std::move(value));
  }
  void push_opaque(std::string_view module, std::string_view name) {
    const std::string whole =
        format("{}.{}", printable(module.substr(0, kLongestName)), printable(name.substr(0, kLongestName)));
    const auto [place, is_new] = opaque_.emplace(whole, static_cast<int64_t>(tree_.opaque_names.size()));
    if (is_new) tree_.opaque_names.push_back(whole);
    push_integer(place->second, ValueKind::opaque);
  }
  /// An object of a class: a dictionary where that is one.
  void push_object(ValueIndex type, ValueIndex arguments) {
    const PickleValue& given = tree_.at(type);
    const bool is_known = given.kind == ValueKind::opaque ||
                          (given.kind == ValueKind::global && given.role == GlobalRole::ordered_dictionary);
    if (!is_known) fail("it makes an object of something that is not a class");
    push(call_global(tree_, type, arguments, here()));
  }
  void push_named_global() {
    const ValueIndex name = pop(), module = pop();
    if (tree_.at(name).kind != ValueKind::text || tree_.at(module).kind != ValueKind::text) {
      fail("the name of a global is not text");
    }
    push_global(tree_.at(module).text, tree_.at(name).text);
  }

  void add_to_list(const std::vector<ValueIndex>& items) {
    count_items(items.size());
    PickleValue& list = tree_.values[top()];
    if (list.kind == ValueKind::opaque) return;
    if (list.kind != ValueKind::list) fail("it appends to something that is not a list");
    list.items.insert(list.items.end(), items.begin(), items.end());
  }
  void add_to_dictionary(const std::vector<ValueIndex>& items) {
    count_items(items.size());
    PickleValue& dictionary = tree_.values[top()];
    if (dictionary.kind == ValueKind::opaque) return;
    if (dictionary.kind != ValueKind::dictionary || items.size() % 2 != 0) {
      fail("it sets items of something that is not a dictionary");
    }
    dictionary.items.insert(dictionary.items.end(), items.begin(), items.end());
  }
  /// State that a pickle sets on a dictionary besides its items: `_metadata` of a state dict, which nothing here needs.
  void build() {
    const ValueIndex state = pop();
    const ValueKind kind = tree_.at(top()).kind;
    if (kind == ValueKind::opaque) {
      count_items(1);
      tree_.values[top()].items.push_back(state);
      return;
    }
    if (kind != ValueKind::dictionary) fail("it sets the state of an object that is not a dictionary");
  }

  /// One of more than 64 bits (the state of a random generator) is passed over.
  void push_long(uint64_t length) {
    if (length > 8) {
      take(length);
      return push_integer(0, ValueKind::inert);
    }
    push_integer(long_integer(length));
  }
  int64_t long_integer(uint64_t length) {
    const std::string_view part = take(length);
    uint64_t value = length > 0 && (part.back() & 0x80) != 0 ? ~uint64_t{0} : 0;
    for (size_t i = part.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(part[i]);
    return static_cast<int64_t>(value);
  }

  void step() {
    opcode_at_ = at_;
    const auto opcode = static_cast<uint8_t>(take(1)[0]);
    if (take_scalar(opcode) || take_container(opcode) || take_machinery(opcode)) return;
    const char* name = opcode_name(opcode);
    if (name == nullptr) fail(format("byte 0x{:02x} is not an opcode", opcode));
    fail(format("opcode {} is not part of a state dict", name));
  }

  bool take_scalar(uint8_t opcode) {
    switch (opcode) {
      case 'N': push({}); return true;
      case 0x88: push_integer(1, ValueKind::boolean); return true;
      case 0x89: push_integer(0, ValueKind::boolean); return true;
      case 'J': push_integer(static_cast<int32_t>(number(4))); return true;
      case 'K': push_integer(static_cast<int64_t>(number(1))); return true;
      case 'M': push_integer(static_cast<int64_t>(number(2))); return true;
      case 0x8a: push_long(number(1)); return true;
      case 0x8b: push_long(number(4)); return true;
      case 'G': take(8), push_integer(0, ValueKind::real); return true;  // nothing here needs its value
      case 'X': push_text(ValueKind::text, number(4)); return true;
      case 0x8c: push_text(ValueKind::text, number(1)); return true;
      case 0x8d: push_text(ValueKind::text, number(8)); return true;
      case 'T': push_text(ValueKind::text, number(4)); return true;  // Python 2's
      case 'U': push_text(ValueKind::text, number(1)); return true;
      case 'B': push_text(ValueKind::bytes, number(4)); return true;
      case 'C': push_text(ValueKind::bytes, number(1)); return true;
      case 0x8e:
      case 0x96: push_text(ValueKind::bytes, number(8)); return true;
      default: return false;
    }
  }

  bool take_container(uint8_t opcode) {
    switch (opcode) {
      case '(': marks_.push_back(stack_.size()); return true;
      case ')': push_items(ValueKind::tuple, {}); return true;
      case ']': push_items(ValueKind::list, {}); return true;
      case '}': push_items(ValueKind::dictionary, {}); return true;
      case 't': push_items(ValueKind::tuple, pop_mark()); return true;
      case 0x85: push_items(ValueKind::tuple, pop_many(1)); return true;
      case 0x86: push_items(ValueKind::tuple, pop_many(2)); return true;
      case 0x87: push_items(ValueKind::tuple, pop_many(3)); return true;
      case 0x8f: push_items(ValueKind::list, {}); return true;  // sets are lists here
      case 0x91:
      case 'l': push_items(ValueKind::list, pop_mark()); return true;
      case 'd': {
        std::vector<ValueIndex> items = pop_mark();
        if (items.size() % 2 != 0) fail("a dictionary has a key without a value");
        push_items(ValueKind::dictionary, std::move(items));
        return true;
      }
      case 0x90: add_to_list(pop_mark()); return true;
      case 'a': add_to_list(pop_many(1)); return true;
      case 'e': add_to_list(pop_mark()); return true;
      case 's': add_to_dictionary(pop_many(2)); return true;
      case 'u': add_to_dictionary(pop_mark()); return true;
      default: return false;
    }
  }

  bool take_machinery(uint8_t opcode) {
    switch (opcode) {
      case 0x80: {
        const uint64_t protocol = number(1);
        if (protocol < 2 || protocol > 5) fail(format("protocol {} is none of 2 to 5", protocol));
        return true;
      }
      case 0x95: number(8); return true;  // the length of a frame, which reading from memory does not need
      case '.':
        if (!marks_.empty() || stack_.size() != 1) fail("it ends with more or less than one value");
        tree_.root = stack_[0];
        stopped_ = true;
        return true;
      case 'q': put(number(1)); return true;
      case 'r': put(number(4)); return true;
      case 0x94: put(memo_.size()); return true;
      case 'h': get(number(1)); return true;
      case 'j': get(number(4)); return true;
      case 'c': {
        const std::string_view module = line();
        push_global(module, line());
        return true;
      }
      case 0x93: push_named_global(); return true;
      case 'R': {
        const ValueIndex arguments = pop(), function = pop();
        push(call_global(tree_, function, arguments, here()));
        return true;
      }
      case 'Q': push(make_storage(tree_, pop(), here())); return true;
      case 'b': build(); return true;
      case '0': pop(); return true;
      case '1': pop_mark(); return true;
      case '2': stack_.push_back(top()); return true;
      case 0x81: {
        const ValueIndex arguments = pop();
        push_object(pop(), arguments);
        return true;
      }
      case 0x92: {
        pop();  // arguments with names
        const ValueIndex arguments = pop();
        push_object(pop(), arguments);
        return true;
      }
      case 'o': {
        std::vector<ValueIndex> items = pop_mark();
        if (items.empty()) fail("its stack is empty");
        const ValueIndex type = items.front();
        items.erase(items.begin());
        push_items(ValueKind::tuple, std::move(items));
        const ValueIndex arguments = pop();
        push_object(type, arguments);
        return true;
      }
      case 'i': {
        const std::string_view module = line();
        std::vector<ValueIndex> items = pop_mark();
        push_global(module, line());
        push_items(ValueKind::tuple, std::move(items));
        const ValueIndex arguments = pop();
        push_object(pop(), arguments);
        return true;
      }
      default: return false;
    }
  }

  const std::string_view bytes_;
  const ByteView view_;
  const std::string& what_;
  uint64_t at_ = 0, opcode_at_ = 0;
  uint64_t items_ = 0;
  bool stopped_ = false;
  PickleTree tree_;
  std::vector<ValueIndex> stack_;
  std::vector<size_t> marks_;  // heights of the stack
  std::vector<std::optional<ValueIndex>> memo_;
  std::unordered_map<std::string, int64_t> opaque_;  // places in opaque_names
};

}  // namespace

PickleTree read_pickle(std::string_view bytes, const std::string& what, uint64_t& consumed) {
  return PickleReader(bytes, what).read(consumed);
}

}  // namespace stoker::data
