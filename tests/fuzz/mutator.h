// SPDX-License-Identifier: Apache-2.0
// Changes inputs at random: bits, numbers, ranges, words of a dictionary, parts of other inputs. Independent of
// formats; a target's custom mutator repairs checksums and lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz_target.h"

namespace stoker::fuzz {

using Bytes = std::vector<uint8_t>;

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  /// Adds the words of a file in the form of AFL and libFuzzer: name="text with \xFF", one per line.
  /// Returns "" or what is wrong.
  std::string read_dictionary(const std::string& path);
  /// Another input to take parts of; must live until the next call. nullptr: none.
  void set_partner(const Bytes* partner) { partner_ = partner; }

  /// One change. `input` never gets longer than `max_size`, nor empty.
  void change(Bytes& input, size_t max_size);
  Choices& random() { return random_; }

 private:
  void write_number(Bytes& input);
  void add_to_number(Bytes& input);
  void change_digits(Bytes& input);
  void copy_range(Bytes& input, const Bytes& from, bool insert);
  void use_word(Bytes& input);
  void use_comparison(Bytes& input);

  Choices random_;
  std::vector<Bytes> dictionary_;
  const Bytes* partner_ = nullptr;
};

}  // namespace stoker::fuzz
