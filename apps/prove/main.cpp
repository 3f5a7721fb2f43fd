// SPDX-License-Identifier: Apache-2.0
// The program stoker-prove, which `train` and libstoker start to try a network's operations: what crashes or hangs
// there harms nobody. Reads one order from standard input and answers with lines of JSON; see lib/proof/worker.h.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/log.h"
#include "proof/worker.h"

namespace {

std::string standard_input() {
  std::string text;
  char bytes[4096];
  for (size_t count = 0; (count = std::fread(bytes, 1, sizeof bytes, stdin)) > 0;) text.append(bytes, count);
  return text;
}

}  // namespace

int main() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);    // the parent is gone: nobody waits for an answer
  const struct rlimit no_core = {0, 0};  // crashes are results here
  ::setrlimit(RLIMIT_CORE, &no_core);
  if (std::FILE* const file = std::fopen("/proc/self/oom_score_adj", "we")) {  // rather than the parent
    std::fputs("1000", file);
    std::fclose(file);
  }
  const std::string order = standard_input();
  if (order.empty()) {
    std::fputs("stoker-prove is started by train and by libstoker\n", stderr);
    return 64;
  }
  // Without destructors of libraries, which could crash after all was answered.
  std::_Exit(stoker::proof::work(order, stdout));
}
