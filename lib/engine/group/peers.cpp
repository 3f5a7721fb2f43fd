// SPDX-License-Identifier: Apache-2.0
#include "engine/group/peers.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdint>
#include <map>

#include "engine/group/message.h"

namespace stoker::engine {
namespace {

constexpr int64_t kFewNumbers = 4096;  // are sent as a whole: fewer messages

/// A part of the numbers: from `begin` to before `end`.
struct Slice {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

/// One sum of numbers that lie one after the other.
class FlatSum {
 public:
  FlatSum(Peers& peers, at::Tensor numbers)
      : peers_(peers), numbers_(std::move(numbers)), received_(at::empty_like(numbers_)) {}

  void run() {
    int half = 1;
    while (2 * half < peers_.size()) half *= 2;
    // The first level pairs rank r with r + half, as far as there is one; where that is not all, ranks beyond give
    // theirs away and get the sum in the end.
    const bool is_power_of_two = 2 * half == peers_.size();
    const int rank = peers_.rank();
    const Slice all{0, numbers_.size(0)};
    if (is_power_of_two) return add_levels(half, all);
    if (rank >= half) {
      exchange(rank - half, all, {}, received_);
      return exchange(rank - half, {}, all, numbers_);
    }
    if (rank + half < peers_.size()) add(rank + half, {}, all);
    if (half > 1) add_levels(half / 2, all);
    if (rank + half < peers_.size()) exchange(rank + half, all, {}, received_);
  }

 private:
  /// Adds over the ranks that differ from this one in the bits of `distance` and below.
  void add_levels(int distance, const Slice& slice) {
    if (distance == 0) return;
    const int peer = peers_.rank() ^ distance;
    if (numbers_.size(0) <= kFewNumbers) {
      add(peer, slice, slice);
      return add_levels(distance / 2, slice);
    }
    const int64_t middle = slice.begin + slice.size() / 2;
    const Slice low{slice.begin, middle}, high{middle, slice.end};
    const Slice& kept = peers_.rank() < peer ? low : high;
    const Slice& given = peers_.rank() < peer ? high : low;
    add(peer, given, kept);
    add_levels(distance / 2, kept);
    exchange(peer, kept, given, numbers_);
  }

  void add(int peer, const Slice& out, const Slice& in) {
    exchange(peer, out, in, received_);
    part_of(numbers_, in).add_(part_of(received_, in));
  }

  /// Received numbers replace `in` of `into`.
  void exchange(int peer, const Slice& out, const Slice& in, const at::Tensor& into) {
    const auto size = static_cast<int64_t>(numbers_.element_size());
    const char* const from = static_cast<const char*>(numbers_.data_ptr()) + out.begin * size;
    char* const to = static_cast<char*>(into.data_ptr()) + in.begin * size;
    peers_.exchange(peer, from, static_cast<size_t>(out.size() * size), to, static_cast<size_t>(in.size() * size));
  }

  static at::Tensor part_of(const at::Tensor& numbers, const Slice& slice) {
    return numbers.slice(0, slice.begin, slice.end);
  }

  Peers& peers_;
  at::Tensor numbers_, received_;  ///< [n]
};

/// How many bytes there are, and the first of them: most messages are no longer.
struct Head {
  static constexpr size_t kCapacity = 504;
  uint64_t size = 0;
  char first[kCapacity] = {};
};

void send_bytes(Peers& peers, int peer, const std::string& bytes) {
  Head head;
  head.size = bytes.size();
  bytes.copy(head.first, Head::kCapacity);
  peers.exchange(peer, &head, sizeof(head), nullptr, 0);
  if (bytes.size() <= Head::kCapacity) return;
  peers.exchange(peer, bytes.data() + Head::kCapacity, bytes.size() - Head::kCapacity, nullptr, 0);
}

std::string receive_bytes(Peers& peers, int peer) {
  Head head;
  peers.exchange(peer, nullptr, 0, &head, sizeof(head));
  std::string bytes(head.first, std::min<size_t>(head.size, Head::kCapacity));
  if (head.size <= Head::kCapacity) return bytes;
  bytes.resize(head.size);
  peers.exchange(peer, nullptr, 0, bytes.data() + Head::kCapacity, bytes.size() - Head::kCapacity);
  return bytes;
}

}  // namespace

void sum_over_peers(Peers& peers, const std::vector<at::Tensor>& tensors) {
  if (peers.size() == 1) return;
  const at::NoGradGuard no_gradients;
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& tensor : tensors) by_type[tensor.scalar_type()].push_back(tensor);
  for (auto& [type, list] : by_type) {
    int64_t numbers = 0;
    for (const at::Tensor& tensor : list) numbers += tensor.numel();
    if (numbers == 0) continue;
    if (list.size() == 1 && list.front().is_contiguous()) {
      FlatSum(peers, list.front().view({-1})).run();
      continue;
    }
    const at::Tensor flat = at::empty({numbers}, list.front().options());  // of this type, on this device
    const auto each_part = [&](const auto& act) {
      int64_t at = 0;
      for (at::Tensor& tensor : list) {
        act(tensor, flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
      }
    };
    each_part([](at::Tensor& tensor, const at::Tensor& part) { part.copy_(tensor); });
    FlatSum(peers, flat).run();
    each_part([](at::Tensor& tensor, const at::Tensor& part) { tensor.copy_(part); });
  }
}

std::vector<std::string> gather_from_peers(Peers& peers, const std::string& bytes) {
  if (peers.rank() != 0) {
    send_bytes(peers, 0, bytes);
    const std::string together = receive_bytes(peers, 0);
    std::vector<std::string> all;
    for (MessageReader reader(together); !reader.at_end();) all.push_back(reader.string());
    return all;
  }
  std::vector<std::string> all = {bytes};
  for (int rank = 1; rank < peers.size(); ++rank) all.push_back(receive_bytes(peers, rank));
  MessageWriter together;
  for (const std::string& of_rank : all) together.add(of_rank);
  for (int rank = 1; rank < peers.size(); ++rank) send_bytes(peers, rank, together.bytes());
  return all;
}

std::string from_root_of_peers(Peers& peers, const std::string& bytes) {
  if (peers.rank() != 0) return receive_bytes(peers, 0);
  for (int rank = 1; rank < peers.size(); ++rank) send_bytes(peers, rank, bytes);
  return bytes;
}

}  // namespace stoker::engine
