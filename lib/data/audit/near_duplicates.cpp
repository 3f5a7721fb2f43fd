// SPDX-License-Identifier: Apache-2.0
#include "data/audit/near_duplicates.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "core/rng.h"
#include "core/system/worker_pool.h"
#include "data/audit/picture_hash.h"

namespace stoker::data {

namespace {

constexpr int kUncertain = 3;          // bits of a quarter that are tried both ways
constexpr int64_t kMaxInBucket = 512;  // entries of a bucket that are looked at

int bits_set(uint64_t bits) { return __builtin_popcountll(bits); }

}  // namespace

// Every quarter gets low and high frequencies: bit i belongs to quarter i % 4.
uint32_t HashIndex::value_of(uint64_t bits, int quarter) {
  uint32_t value = 0;
  for (int i = 0; i < kBitsEach; ++i) value |= static_cast<uint32_t>(bits >> (4 * i + quarter) & 1) << i;
  return value;
}

HashIndex::HashIndex(const std::vector<uint64_t>& hashes) {
  for (int q = 0; q < kQuarters; ++q) {
    Quarter& quarter = quarters_[static_cast<size_t>(q)];
    quarter.begins.assign((size_t{1} << kBitsEach) + 1, 0);
    for (const uint64_t bits : hashes) ++quarter.begins[value_of(bits, q) + 1];
    for (size_t i = 1; i < quarter.begins.size(); ++i) quarter.begins[i] += quarter.begins[i - 1];
    std::vector<int64_t> next(quarter.begins.begin(), quarter.begins.end() - 1);
    quarter.entries.resize(hashes.size());
    for (size_t i = 0; i < hashes.size(); ++i) {
      quarter.entries[static_cast<size_t>(next[value_of(hashes[i], q)]++)] = {hashes[i], static_cast<int64_t>(i)};
    }
  }
}

void HashIndex::look(int quarter, uint32_t value, uint64_t bits, int most_bits, uint64_t salt,
                     std::vector<Match>& matches) const {
  const Quarter& of = quarters_[static_cast<size_t>(quarter)];
  const int64_t begin = of.begins[value], count = of.begins[value + 1] - begin;
  const int64_t looked_at = std::min(count, kMaxInBucket);
  const int64_t first = count > looked_at ? static_cast<int64_t>(salt % static_cast<uint64_t>(count)) : 0;
  for (int64_t i = 0; i < looked_at; ++i) {
    const Entry& entry = of.entries[static_cast<size_t>(begin + (first + i) % count)];
    const int distance = bits_set(entry.bits ^ bits);
    if (distance <= most_bits) matches.push_back({entry.entry, distance});
  }
}

void HashIndex::find(const PictureHash& hash, int most_bits, uint64_t salt, std::vector<Match>& matches) const {
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    const uint32_t value = value_of(hash.bits, quarter);
    std::array<int, kBitsEach> order;
    for (int i = 0; i < kBitsEach; ++i) order[static_cast<size_t>(i)] = i;
    const auto margin = [&](int i) { return hash.margin[static_cast<size_t>(4 * i + quarter)]; };
    std::partial_sort(order.begin(), order.begin() + kUncertain, order.end(),
                      [&](int a, int b) { return margin(a) < margin(b); });
    for (uint32_t turned = 0; turned < 1u << kUncertain; ++turned) {
      uint32_t tried = value;
      for (int k = 0; k < kUncertain; ++k) tried ^= (turned >> k & 1) << order[static_cast<size_t>(k)];
      look(quarter, tried, hash.bits, most_bits, salt, matches);
    }
  }
}

namespace {

constexpr int kMaxBits = 10;           // by which the hashes of a candidate differ; copies: 7 of 64, 99 in 100
constexpr size_t kMaxCandidates = 12;  // that are compared for one picture
constexpr double kLeastContrast = 3;   // gray levels; below, a hash is noise
constexpr float kLeastAgreement = 0.9f;
constexpr size_t kRival = 8;  // the candidate from which a copy has to stand out
constexpr float kShareOfRival = 0.2f;
constexpr int64_t kStrangers = 4000;    // pairs
constexpr float kAlwaysEqual = 0.002f;  // agreement that any pair of copies may lack
constexpr int64_t kPicturesAtATime = 32;

struct Candidate {
  int64_t picture = 0;
  int distance = 0;
  PictureWindow window;
};

struct Compared {
  int64_t picture = 0;
  float lacking = 1;  ///< 1 - agreement
};

class Search {
 public:
  explicit Search(const std::vector<Picture>& pictures) : pictures_(pictures) {
    for (size_t i = 0; i < pictures.size(); ++i) {
      if (pictures[i].shorter_side > 0 && contrast_of(pictures[i].thumbnail) >= kLeastContrast) {
        compared_.push_back(static_cast<int64_t>(i));
      }
    }
  }

  std::vector<NearPair> run(int64_t threads) {
    hash_all(threads);
    const HashIndex index(hashes_);
    std::vector<std::vector<Compared>> by_picture(pictures_.size());
    for_blocks(threads, [&] {
      return [&, windows = std::vector<WindowHash>(), matches = std::vector<HashIndex::Match>()](int64_t i) mutable {
        const int64_t picture = compared_[static_cast<size_t>(i)];
        for (const Candidate& candidate : candidates_of(index, i, windows, matches)) {
          const float lacking = 1 - agreement(picture, candidate);
          by_picture[static_cast<size_t>(picture)].push_back({candidate.picture, lacking});
        }
      };
    });
    return standing_out(by_picture, lacked_by_strangers(threads));
  }

 private:
  template <typename MakeVisit>
  void for_blocks(int64_t threads, const MakeVisit& make_visit) const {
    const auto count = static_cast<int64_t>(compared_.size());
    core::for_each_index((count + kPicturesAtATime - 1) / kPicturesAtATime, threads, [&] {
      return [&, visit = make_visit()](int64_t block) mutable {
        for (int64_t i = block * kPicturesAtATime; i < std::min(count, (block + 1) * kPicturesAtATime); ++i) visit(i);
      };
    });
  }

  const Thumbnail& thumbnail(int64_t picture) const { return pictures_[static_cast<size_t>(picture)].thumbnail; }

  void hash_all(int64_t threads) {
    std::vector<HashCoefficients> coefficients(compared_.size());
    for_blocks(threads, [&] {
      return [&](int64_t i) {
        coefficients[static_cast<size_t>(i)] = hasher_.coefficients(thumbnail(compared_[static_cast<size_t>(i)]));
      };
    });
    usual_ = PictureHasher::usual(coefficients);
    for (const HashCoefficients& of : coefficients) hashes_.push_back(PictureHasher::hash_of(of, usual_).bits);
  }

  /// Other pictures whose hash is close to that of a window of this one, each with the closest window; the closest
  /// first.
  std::vector<Candidate> candidates_of(const HashIndex& index, int64_t i, std::vector<WindowHash>& windows,
                                       std::vector<HashIndex::Match>& matches) const {
    const int64_t picture = compared_[static_cast<size_t>(i)];
    hasher_.window_hashes(thumbnail(picture), usual_, windows);
    std::unordered_map<int64_t, Candidate> best;
    for (const WindowHash& window : windows) {
      matches.clear();
      index.find(window.hash, kMaxBits, static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u, matches);
      for (const HashIndex::Match& match : matches) {
        const int64_t other = compared_[static_cast<size_t>(match.entry)];
        if (other == picture) continue;
        const auto found = best.try_emplace(other, Candidate{other, kMaxBits + 1, {}}).first;
        if (match.distance < found->second.distance) found->second = {other, match.distance, window.window};
      }
    }
    std::vector<Candidate> candidates;
    candidates.reserve(best.size());
    for (const auto& [other, candidate] : best) candidates.push_back(candidate);
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.distance != b.distance ? a.distance < b.distance : a.picture < b.picture;
    });
    if (candidates.size() > kMaxCandidates) candidates.resize(kMaxCandidates);
    return candidates;
  }

  float agreement(int64_t picture, const Candidate& candidate) const {
    const Picture &original = pictures_[static_cast<size_t>(picture)],
                  &copy = pictures_[static_cast<size_t>(candidate.picture)];
    return static_cast<float>(aligned_agreement(original.thumbnail, copy.thumbnail, candidate.window,
                                                std::min(original.shorter_side, copy.shorter_side)));
  }

  /// The distance of unrelated pictures: exceeded by 99 in 100 pairs drawn at random. In a small set, copies can be
  /// more than a hundredth of all pairs, each picture has up to kRival of them: by correspondingly fewer.
  float lacked_by_strangers(int64_t threads) const {
    if (compared_.size() < 2) return 1;
    std::vector<float> lacking(kStrangers);
    core::for_each_index(kStrangers, threads, [&] {
      return [&](int64_t pair) {
        core::Rng rng(0, core::RngPurpose::probe, 0, static_cast<uint64_t>(pair));
        const auto first = rng.below(compared_.size()), second = rng.below(compared_.size() - 1);
        const int64_t a = compared_[first], b = compared_[second + (second >= first ? 1 : 0)];
        lacking[static_cast<size_t>(pair)] = 1 - agreement(a, {b, 0, {}});
      };
    });
    const double copies = static_cast<double>(kRival) / static_cast<double>(compared_.size() - 1);
    const auto least = lacking.begin() + static_cast<int64_t>(kStrangers * std::clamp(copies, 0.01, 0.5));
    std::nth_element(lacking.begin(), least, lacking.end());
    return *least;
  }

  /// The distance of the eighth candidate of a picture; 1 where there are fewer.
  static float rival_of(std::vector<Compared> compared) {
    if (compared.size() < kRival) return 1;
    const auto rival = compared.begin() + (kRival - 1);
    std::nth_element(compared.begin(), rival, compared.end(),
                     [](const Compared& a, const Compared& b) { return a.lacking < b.lacking; });
    return rival->lacking;
  }

  static std::vector<NearPair> standing_out(const std::vector<std::vector<Compared>>& by_picture, float strangers) {
    std::vector<float> rivals;
    for (const std::vector<Compared>& compared : by_picture) rivals.push_back(std::min(strangers, rival_of(compared)));
    std::vector<NearPair> pairs;
    for (size_t i = 0; i < by_picture.size(); ++i) {
      for (const Compared& with : by_picture[i]) {
        const float rival = std::min(rivals[i], rivals[static_cast<size_t>(with.picture)]);
        const float allowed = std::min(1 - kLeastAgreement, std::max(kAlwaysEqual, kShareOfRival * rival));
        if (with.lacking > allowed) continue;
        const auto a = static_cast<int64_t>(i);
        pairs.push_back({std::min(a, with.picture), std::max(a, with.picture), 1 - with.lacking});
      }
    }
    // Found from both sides: once, as well as it was found.
    std::sort(pairs.begin(), pairs.end(), [](const NearPair& x, const NearPair& y) {
      return std::make_tuple(x.a, x.b, -x.agreement) < std::make_tuple(y.a, y.b, -y.agreement);
    });
    const auto same = [](const NearPair& x, const NearPair& y) { return x.a == y.a && x.b == y.b; };
    pairs.erase(std::unique(pairs.begin(), pairs.end(), same), pairs.end());
    return pairs;
  }

  const std::vector<Picture>& pictures_;
  const PictureHasher hasher_;
  UsualCoefficients usual_;
  std::vector<int64_t> compared_;  ///< pictures that have something to compare
  std::vector<uint64_t> hashes_;   ///< of these
};

}  // namespace

std::vector<NearPair> near_pairs(const std::vector<Picture>& pictures, int64_t threads) {
  return Search(pictures).run(threads);
}

}  // namespace stoker::data
