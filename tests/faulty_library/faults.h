// SPDX-License-Identifier: Apache-2.0
// Which fault the environment asks for, and how it makes a result wrong. For one source file.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <string>

#include "onednn_results.h"

namespace stoker::faulty {

enum class Fault {
  none,
  relative,
  quarter,
  channel,
  border,
  nan,
  unstable,
  flicker,
  threads2,
  batch5,
  weight,
  behind,
  crash,
  hang,
  cache1
};
struct NamedFault {
  const char* name;
  Fault fault;
  int signal = 0;
};
constexpr NamedFault kFaults[] = {
    {"relative", Fault::relative},     // all elements are 2^-10 too large, in bfloat16 2^-6
    {"quarter", Fault::quarter},       // so is a quarter of them
    {"channel", Fault::channel},       // one channel is zero
    {"border", Fault::border},         // the first or the last row of each image is half as large again
    {"nan", Fault::nan},               // one row of one image is not a number; of a gradient of weights, one channel
    {"unstable", Fault::unstable},     // all elements are up to 2^-9 (2^-5) too large, every call by something else
    {"flicker", Fault::flicker},       // every call rounds another sixteenth of the elements to the wrong side
    {"threads2", Fault::threads2},     // as relative, where two threads or more compute
    {"batch5", Fault::batch5},         // as relative, in batches of five or more
    {"weight", Fault::weight},         // as relative, in gradients of the weights alone
    {"behind", Fault::behind},         // what stands behind the input, times zero, is added to the last element
    {"SIGFPE", Fault::crash, SIGFPE},  // these in a third of the operations
    {"SIGILL", Fault::crash, SIGILL},
    {"SIGSEGV", Fault::crash, SIGSEGV},
    {"abort", Fault::crash, SIGABRT},
    {"hang", Fault::hang},
    {"cache1", Fault::cache1},  // oneDNN 3 takes the caches of the processor for one byte each
};

struct Order {
  NamedFault fault{"", Fault::none};
  bool in_convolutions = true, in_products = true;
  uint64_t seed = 0;
  int log = -1;
};

inline const Order& order() {
  static const Order given = [] {
    Order order;
    const char *const fault = ::getenv("STOKER_FAULT"), *const where = ::getenv("STOKER_FAULT_IN");
    const char *const seed = ::getenv("STOKER_FAULT_SEED"), *const log = ::getenv("STOKER_FAULT_LOG");
    for (const NamedFault& named : kFaults) {
      if (fault != nullptr && std::string(fault) == named.name) order.fault = named;
    }
    if (where != nullptr && *where != 0) {
      order.in_convolutions = std::string(where) == "convolution";
      order.in_products = std::string(where) == "product";
    }
    if (seed != nullptr) order.seed = std::strtoull(seed, nullptr, 10);
    if (log != nullptr) order.log = ::open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return order;
  }();
  return given;
}

inline std::atomic<int64_t> changes{0}, calls{0};

inline void write_log(const char* when) {
  if (order().log < 0) return;
  const std::string line = std::to_string(::getpid()) + " " + std::to_string(changes.load()) + " " + when + "\n";
  if (::write(order().log, line.data(), line.size()) < 0) ::perror("STOKER_FAULT_LOG");
}

/// A number that looks random, the same for the same seed and `what`.
inline uint64_t drawn(uint64_t what) {
  uint64_t x = (order().seed + 1) * 0x9E3779B97F4A7C15u ^ (what + 1) * 0xD6E8FEB86659FD93u;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
  x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
  return x ^ x >> 32;
}

/// The meaning of the dimensions of a result: an image of a batch, a channel, rows of an image.
struct Roles {
  size_t image = 0, channel = 1, row = 2;
};

inline Roles roles_of(const Result& result, Kind kind, bool is_weight) {
  const size_t dims = result.sizes.size();
  if (kind == Kind::product) return {0, dims - 1, dims - 2};
  if (is_weight) return {0, 0, dims - 2};
  return {0, 1, 2 < dims ? 2 : dims - 1};
}

/// `change` for the offset of each element for which `is_meant(index)`.
template <typename Meant, typename Change>
inline void for_each(const Result& result, const Meant& is_meant, const Change& change) {
  std::vector<int64_t> index(result.sizes.size(), 0);
  for (const int64_t size : result.sizes) {
    if (size == 0) return;
  }
  for (bool is_done = false; !is_done;) {
    if (is_meant(index)) change(result.offset(index));
    is_done = true;
    for (size_t dim = index.size(); dim-- > 0 && is_done;) {
      is_done = ++index[dim] == result.sizes[dim];
      if (is_done) index[dim] = 0;
    }
  }
}

inline void multiply(const Result& result, double float32, double bfloat16) {
  const double factor = 1 + (result.type == Type::float32 ? float32 : bfloat16);
  for (int64_t i = 0; i < result.elements_in_memory; ++i) {
    const int64_t at = result.place(i);
    result.set(at, static_cast<float>(result.get(at) * factor));
  }
}

/// One unit in the last place more.
inline void nudge(const Result& result, int64_t at) {
  const size_t bytes = result.type == Type::float32 ? 4 : 2;
  result.bytes[static_cast<size_t>(at) * bytes] ^= 1;
}

/// Changes what one channel, border or row holds.
inline void spoil_part(const Result& result, const Roles& roles) {
  const auto any = [&](size_t dim) {
    return static_cast<int64_t>(drawn(dim) % static_cast<uint64_t>(std::max<int64_t>(1, result.sizes[dim])));
  };
  const int64_t channel = any(roles.channel), image = any(roles.image), row = any(roles.row);
  const int64_t border = drawn(99) % 2 == 0 ? 0 : result.sizes[roles.row] - 1;
  for_each(
      result,
      [&](const std::vector<int64_t>& index) {
        switch (order().fault.fault) {
          case Fault::channel: return index[roles.channel] == channel;
          case Fault::border: return index[roles.row] == border;
          default:
            return roles.channel == 0 ? index[0] == channel : index[roles.image] == image && index[roles.row] == row;
        }
      },
      [&](int64_t at) {
        switch (order().fault.fault) {
          case Fault::channel: return result.set(at, 0);
          case Fault::border: return result.set(at, 1.5F * result.get(at));
          default: return result.set(at, std::numeric_limits<float>::quiet_NaN());
        }
      });
}

inline int threads_now() {
  static const auto most = function_of<int (*)()>("omp_get_max_threads");
  return most == nullptr ? 1 : most();
}

/// Makes a result wrong as was ordered. `batch`: images that the operation computes.
inline void spoil(const Result& result, Kind kind, bool is_weight, int64_t batch, int64_t call) {
  if (result.type == Type::other || result.bytes == nullptr || result.elements_in_memory == 0) return;
  constexpr double kFloat32 = 0x1p-10, kBFloat16 = 0x1p-6;
  switch (order().fault.fault) {
    case Fault::none:
    case Fault::behind:
    case Fault::crash:
    case Fault::hang:
    case Fault::cache1: return;
    case Fault::threads2:
      if (threads_now() < 2) return;
      multiply(result, kFloat32, kBFloat16);
      break;
    case Fault::batch5:
      if (batch < 5) return;
      multiply(result, kFloat32, kBFloat16);
      break;
    case Fault::weight:
      if (!is_weight) return;
      multiply(result, kFloat32, kBFloat16);
      break;
    case Fault::relative: multiply(result, kFloat32, kBFloat16); break;
    case Fault::unstable: {
      const double part = static_cast<double>(call % 3) / 2;
      multiply(result, 2 * kFloat32 * part, 2 * kBFloat16 * part);
      break;
    }
    case Fault::quarter:
    case Fault::flicker: {
      const bool is_quarter = order().fault.fault == Fault::quarter;
      const double factor = 1 + (result.type == Type::float32 ? kFloat32 : kBFloat16);
      for (int64_t i = 0; i < result.elements_in_memory; ++i) {
        const uint64_t number = drawn(static_cast<uint64_t>(is_quarter ? i : i + 1'000'003 * call));
        const int64_t at = result.place(i);
        if (is_quarter && number % 4 == 0) result.set(at, static_cast<float>(result.get(at) * factor));
        if (!is_quarter && number % 16 == 0 && result.get(at) != 0) nudge(result, at);
      }
      break;
    }
    case Fault::channel:
    case Fault::border:
    case Fault::nan:
      if (result.sizes.size() < 2) return;
      spoil_part(result, roles_of(result, kind, is_weight));
      break;
  }
  if (changes++ == 0) write_log("first");
}

/// Adds to the last element of `result` the element behind `input`, times zero: as kernels do that read on.
inline void read_behind(const Result& input, const Result& result) {
  if (order().fault.fault != Fault::behind || input.sizes.empty() || result.sizes.empty()) return;
  if (input.type == Type::other || result.type == Type::other || result.elements_in_memory == 0) return;
  const float behind = input.get(input.elements_in_memory);
  if (behind == behind) return;  // but for NaN that is zero
  result.set(result.elements_in_memory - 1, behind);
  if (changes++ == 0) write_log("first");
}

/// Crashes or hangs in the third of the operations that the sizes of their results and the seed decide, not the batch.
inline void crash_or_hang(const std::vector<int64_t>& sizes) {
  if (order().fault.fault != Fault::crash && order().fault.fault != Fault::hang) return;
  uint64_t number = 0;
  for (size_t i = 1; i < sizes.size(); ++i) number = number * 31 + static_cast<uint64_t>(sizes[i]);
  if (drawn(number) % 3 != 0) return;
  ++changes;
  write_log("crash");
  if (order().fault.fault == Fault::crash) {
    ::signal(order().fault.signal, SIG_DFL);
    ::raise(order().fault.signal);
  }
  for (;;) ::pause();
}

}  // namespace stoker::faulty
