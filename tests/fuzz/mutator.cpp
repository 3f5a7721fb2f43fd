// SPDX-License-Identifier: Apache-2.0
#include "mutator.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "coverage.h"

namespace stoker::fuzz {
namespace {

/// Numbers at which sizes, signs and types end.
constexpr uint64_t kNumbers[] = {
    0,          1,          2,          3,          7,          8,          16,         31,         32,
    64,         100,        127,        128,        255,        256,        511,        512,        1000,
    1023,       1024,       4096,       32767,      32768,      65535,      65536,      0x7FFFFF,   0xFFFFFF,
    0x7FFFFFFE, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF, 1ull << 32, 1ull << 40, 0x7FFFFFFFFFFFFFFF,
    1ull << 63, ~15ull,     ~1ull,      ~0ull};

constexpr const char* kDigits[] = {"0",
                                   "1",
                                   "-1",
                                   "00",
                                   "07",
                                   "8",
                                   "255",
                                   "65535",
                                   "65536",
                                   "2147483647",
                                   "2147483648",
                                   "4294967295",
                                   "4294967296",
                                   "77777777777",
                                   "9223372036854775807",
                                   "18446744073709551615",
                                   "18446744073709551616",
                                   "1e400",
                                   "1.5",
                                   "1e3",
                                   "99999999999999999999999999999999"};

uint64_t read_little(const uint8_t* at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | at[i];
  return value;
}

void write_bytes(uint8_t* at, uint64_t value, int bytes, bool big) {
  for (int i = 0; i < bytes; ++i) at[big ? bytes - 1 - i : i] = static_cast<uint8_t>(value >> (8 * i));
}

uint64_t reversed(uint64_t value, int bytes) {
  uint8_t turned[8];
  write_bytes(turned, value, bytes, true);
  return read_little(turned, bytes);
}

}  // namespace

std::string Mutator::read_dictionary(const std::string& path) {
  std::ifstream file(path);
  if (!file) return "cannot read " + path;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    const size_t open = line.find('"'), close = line.rfind('"');
    if (open == close) return path + ": not a word in quotes: " + line;
    Bytes word;
    for (size_t i = open + 1; i < close; ++i) {
      if (line[i] == '\\' && i + 3 < line.size() && line[i + 1] == 'x') {
        word.push_back(static_cast<uint8_t>(std::stoi(line.substr(i + 2, 2), nullptr, 16)));
        i += 3;
      } else {
        if (line[i] == '\\') ++i;
        word.push_back(static_cast<uint8_t>(line[i]));
      }
    }
    if (!word.empty()) dictionary_.push_back(word);
  }
  return "";
}

void Mutator::change(Bytes& input, size_t max_size) {
  if (input.empty()) input.push_back(static_cast<uint8_t>(random_.below(256)));
  const size_t at = random_.below(input.size());
  switch (random_.below(14)) {
    case 0:
    case 1: input[at] = static_cast<uint8_t>(input[at] ^ 1u << random_.below(8)); break;
    case 2: input[at] = static_cast<uint8_t>(random_.below(256)); break;
    case 3: write_number(input); break;
    case 4: add_to_number(input); break;
    case 5: {
      const uint8_t byte = static_cast<uint8_t>(random_.one_in(2) ? random_.below(256) : input[at]);
      input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), 1 + random_.below(16), byte);
      break;
    }
    case 6: {
      const size_t most = random_.one_in(4) ? input.size() - at : std::min<size_t>(16, input.size() - at);
      const auto first = input.begin() + static_cast<std::ptrdiff_t>(at);
      input.erase(first, first + static_cast<std::ptrdiff_t>(1 + random_.below(most)));
      break;
    }
    case 7: copy_range(input, Bytes(input), random_.one_in(2)); break;
    case 8:
      if (partner_ != nullptr && !partner_->empty()) copy_range(input, *partner_, random_.one_in(2));
      break;
    case 9:  // the head of this one, the tail of the other
      if (partner_ != nullptr && !partner_->empty()) {
        const size_t from = std::min(at, partner_->size() - 1);
        input.resize(at);
        input.insert(input.end(), partner_->begin() + static_cast<std::ptrdiff_t>(from), partner_->end());
      }
      break;
    case 10: change_digits(input); break;
    case 11: use_comparison(input); break;
    default: use_word(input);
  }
  if (input.size() > max_size) input.resize(max_size);
  if (input.empty()) input.push_back(0);
}

void Mutator::write_number(Bytes& input) {
  const int bytes = 1 << random_.below(4);
  if (input.size() < static_cast<size_t>(bytes)) return;
  const size_t at = random_.below(input.size() - static_cast<size_t>(bytes) + 1);
  write_bytes(input.data() + at, kNumbers[random_.below(std::size(kNumbers))], bytes, random_.one_in(2));
}

void Mutator::add_to_number(Bytes& input) {
  const int bytes = 1 << random_.below(4);
  if (input.size() < static_cast<size_t>(bytes)) return;
  uint8_t* const at = input.data() + random_.below(input.size() - static_cast<size_t>(bytes) + 1);
  const bool big = random_.one_in(2);
  const uint64_t value = read_little(at, bytes), step = random_.below(71) - 35;
  write_bytes(at, (big ? reversed(value, bytes) : value) + step, bytes, big);
}

/// Puts another number where the input has one in decimal or octal digits.
void Mutator::change_digits(Bytes& input) {
  const auto is_digit = [](uint8_t byte) { return std::isdigit(byte) != 0; };
  const auto from = input.begin() + static_cast<std::ptrdiff_t>(random_.below(input.size()));
  const auto first = std::find_if(from, input.end(), is_digit);
  const auto last = std::find_if_not(first, input.end(), is_digit);
  if (first == last) return;
  const std::string digits = random_.one_in(2) ? kDigits[random_.below(std::size(kDigits))]
                                               : std::to_string(random_.below(1ull << random_.below(34)));
  if (random_.one_in(2)) {  // fields of fixed width stay in place
    const auto width = static_cast<size_t>(last - first);
    for (size_t i = 0; i < width; ++i) {
      first[static_cast<std::ptrdiff_t>(width - 1 - i)] =
          i < digits.size() ? static_cast<uint8_t>(digits[digits.size() - 1 - i]) : uint8_t{'0'};
    }
    return;
  }
  const auto gap = input.erase(first, last);
  input.insert(gap, digits.begin(), digits.end());
}

void Mutator::copy_range(Bytes& input, const Bytes& from, bool insert) {
  const size_t begin = random_.below(from.size());
  const size_t most = random_.one_in(4) ? from.size() - begin : std::min<size_t>(64, from.size() - begin);
  const size_t count = 1 + random_.below(most), at = random_.below(input.size());
  const auto first = from.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto target = input.begin() + static_cast<std::ptrdiff_t>(at);
  if (insert) {
    input.insert(target, first, first + static_cast<std::ptrdiff_t>(count));
  } else {
    std::copy_n(first, std::min(count, input.size() - at), target);
  }
}

void Mutator::use_word(Bytes& input) {
  if (dictionary_.empty()) return;
  const Bytes& word = dictionary_[random_.below(dictionary_.size())];
  const size_t at = random_.below(input.size() + 1);
  if (random_.one_in(2)) {
    input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), word.begin(), word.end());
  } else {
    std::copy_n(word.begin(), std::min(word.size(), input.size() - at),
                input.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

/// Where the input holds one side of a comparison that failed, writes the other, or a neighbour of it.
void Mutator::use_comparison(Bytes& input) {
  const Comparison seen = recent_comparison(random_.below(1 << 20));
  const auto bytes = static_cast<size_t>(seen.bytes);
  if (bytes == 0 || input.size() < bytes) return;
  const bool big = random_.one_in(2), forward = random_.one_in(2);
  const uint64_t from = forward ? seen.left : seen.right;
  const uint64_t to = (forward ? seen.right : seen.left) + random_.below(3) - 1;
  uint8_t pattern[8];
  write_bytes(pattern, from, seen.bytes, big);
  const auto start = input.begin() + static_cast<std::ptrdiff_t>(random_.below(input.size() - bytes + 1));
  auto found = std::search(start, input.end(), pattern, pattern + bytes);
  if (found == input.end()) found = std::search(input.begin(), input.end(), pattern, pattern + bytes);
  if (found != input.end()) write_bytes(&*found, to, seen.bytes, big);
}

}  // namespace stoker::fuzz
