// SPDX-License-Identifier: Apache-2.0
// What a process needs before it does anything: signals, file descriptors, memory arenas, library warnings.
#pragma once

namespace stoker::train {

/// Installs stop signals, re-opens closed standard descriptors on /dev/null, raises the limit of open files, and
/// sends LibTorch's warnings to our log.
void prepare_process();

}  // namespace stoker::train
