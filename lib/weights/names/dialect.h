// SPDX-License-Identifier: Apache-2.0
// How a library names the tensors of a network that we name as torchvision does: rows of patterns. Works on names
// alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stoker::weights {

/// Names that fit `theirs` are called `ours`. In `theirs` {s} stands for a whole number, and * at the end for any text.
/// `ours` repeats them; {s+1}, {s-1}, {2s} and {2s+1} calculate.
struct NameRow {
  std::string theirs, ours;
  int part = 0, parts = 1;  ///< several of their tensors, one below the other, make one of ours
};

struct Dialect {
  std::string name;               ///< "torchvision"
  std::string body;               ///< what their names may begin with besides: "resnet."
  std::vector<NameRow> rows;      ///< the first that fits counts
  std::vector<std::string> idle;  ///< patterns of tensors that our network has no use for
  double norm_eps = 0;            ///< epsilon of their batch norms; 0: as ours
  std::string remark;             ///< a note for users of such weights; empty: none
};

struct OurName {
  std::string name;
  int part = 0, parts = 1;
};

/// The role of a tensor of another library here.
enum class NameKind { known, idle, unknown };
NameKind translate(const Dialect& dialect, std::string_view theirs, OurName& ours);

/// The dialects in which a network's weights are found, torchvision's and our own first. Only that one for networks
/// that no other library has.
std::vector<Dialect> dialects_of(const std::string& network);

}  // namespace stoker::weights
