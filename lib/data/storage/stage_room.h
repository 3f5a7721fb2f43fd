// SPDX-License-Identifier: Apache-2.0
// The folder that copies are made in (--stage-dir): whether it has room, and what killed runs left there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stoker::data {

inline constexpr char kStagePrefix[] = "stoker-stage-";  ///< with what the name of every copy begins

/// Throws core::Error{no_input} where `directory` is no folder.
void require_stage_folder(const std::string& directory);
/// Makes sure that `directory` can take so many bytes, in memory (tmpfs) no more than is free of that; copies that
/// nobody uses are removed where it needs that. `what` has them, for messages. Throws core::Error{cannot_create} with
/// both sizes.
void require_stage_room(uint64_t bytes, const std::string& what, const std::string& directory);
/// Removes a copy, a file or a folder of them, unless a process holds its lock.
void remove_unused_copy(const std::string& path);
/// Paths in `directory` whose names begin with `prefix`; none where it cannot be listed.
std::vector<std::string> copies_in(const std::string& directory, const std::string& prefix);
/// Without links and dots; as it is where there is no such file.
std::string resolved_path(const std::string& path);
/// "1.6 GB"
std::string size_text(uint64_t bytes);

}  // namespace stoker::data
