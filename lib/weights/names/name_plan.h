// SPDX-License-Identifier: Apache-2.0
// Which tensors of a file make which tensors of a network: chosen among the dictionaries of the file, without the
// prefixes of wrappers, in the dialect that fits best. Works on names alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weights/names/dialect.h"

namespace stoker::weights {

/// A tensor of a file by the dictionaries around it and its name.
struct GroupedName {
  std::string group, name;
};

/// An object of a class where a tensor may stand: nothing in a file builds it.
struct ObjectName {
  std::string group, name;
  bool is_tensor = false;  ///< PyTorch builds a tensor with it
};

struct NamePlan {
  /// One tensor of ours: the places of theirs that make it, one below the other.
  struct Source {
    std::string ours;
    std::vector<size_t> theirs;
  };
  std::vector<Source> sources;  ///< sorted by `ours`; may hold names that the network does not have
  /// An object in place of a tensor that the network has.
  struct Object {
    std::string ours;
    size_t place;  ///< its index among the objects; that of the first one where several would make the tensor
  };
  std::vector<Object> objects;            ///< sorted by `ours`
  std::vector<std::string> left_out;      ///< tensors of wrappers beside the network, or idle in the dialect
  std::string group, prefix, dialect;     ///< what was chosen; group and prefix may be empty
  std::vector<std::string> other_groups;  ///< that hold tensors, too
  double norm_eps = 0;                    ///< epsilon of their batch norms; 0: as ours
  std::string remark;                     ///< a note for users of such weights; may be empty
  size_t profiler_counters = 0;           ///< total_ops and total_params, which are left out
  size_t matched = 0;                     ///< sources that the network has a tensor for
};

/// `wanted` are the names of the network's tensors, `objects` all that is opaque in the file. Throws Error{data} when
/// no dictionary is one that weights are kept in, or several tensors would make one of ours.
NamePlan plan_names(const std::string& network, const std::vector<std::string>& wanted,
                    const std::vector<GroupedName>& given, const std::string& what,
                    const std::vector<ObjectName>& objects = {});

}  // namespace stoker::weights
