// SPDX-License-Identifier: Apache-2.0
// In place of c10d where LibTorch or the headers of Gloo lack what it takes.
#include "core/error.h"
#include "engine/group/c10d/join.h"

namespace stoker::engine {
namespace {

[[noreturn]] void refuse() {
  throw core::Error(core::ErrorKind::unavailable, "this program was built without c10d: it runs as one process",
                    "build it with the headers of Gloo (libgloo-dev), or leave out --devices");
}

}  // namespace

bool can_join_processes() { return false; }
bool can_listen_at_one_address() { return true; }
std::unique_ptr<Group> join_processes(const Joining&) { refuse(); }

}  // namespace stoker::engine
