// SPDX-License-Identifier: Apache-2.0
#include "data/audit/near_duplicates.h"

#include <algorithm>
#include <numeric>
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

constexpr int kMaxBits = 10;          // by which the hashes of a candidate differ; copies: 7 of 64, 99 in 100
constexpr size_t kClosest = 12;       // candidates that are compared for one picture,
constexpr size_t kFurther = 48;       // and as many more where most of these may be its copies
constexpr double kLeastContrast = 3;  // gray levels; below, a hash is noise
constexpr float kLeastAgreement = 0.9f;
constexpr size_t kRival = 8;  // a copy has to stand out from the eighth candidate that is none
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

struct ComparedOfPicture {
  std::vector<Compared> with;
  bool is_all = true;  ///< every candidate was compared, or some of every distance
};

/// In `lacking`, ascending, the one `rank` places behind the last copy. Copies are a family of any size that ends with
/// a gap: its last member lacks less than a fifth of that one. `beyond`: what those lack that are not in the list. Few
/// behind a large family are judged themselves: similar clothes have no gap.
float rival_behind_copies(const std::vector<float>& lacking, size_t rank, float beyond) {
  const auto rival = [&](size_t copies) {
    if (copies + rank <= lacking.size()) return lacking[copies + rank - 1];
    return copies >= rank && copies < lacking.size() ? lacking.back() : beyond;
  };
  size_t copies = lacking.size();
  while (copies > 0 &&
         (lacking[copies - 1] > 1 - kLeastAgreement || lacking[copies - 1] > kShareOfRival * rival(copies))) {
    --copies;
  }
  return rival(copies);
}

/// Pictures that are connected by pairs.
class Families {
 public:
  explicit Families(size_t pictures) : parents_(pictures) { std::iota(parents_.begin(), parents_.end(), int64_t{0}); }
  int64_t of(int64_t picture) {
    while (parents_[static_cast<size_t>(picture)] != picture) {
      int64_t& parent = parents_[static_cast<size_t>(picture)];
      picture = parent = parents_[static_cast<size_t>(parent)];
    }
    return picture;
  }
  void join(int64_t a, int64_t b) { parents_[static_cast<size_t>(of(a))] = of(b); }

 private:
  std::vector<int64_t> parents_;
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
    std::vector<ComparedOfPicture> by_picture(pictures_.size());
    for_blocks(threads, [&] {
      return [&, windows = std::vector<WindowHash>(), matches = std::vector<HashIndex::Match>()](int64_t i) mutable {
        const int64_t picture = compared_[static_cast<size_t>(i)];
        by_picture[static_cast<size_t>(picture)] =
            compared_with(picture, candidates_of(index, i, windows, matches), static_cast<size_t>(i));
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
    return candidates;
  }

  /// Compares with the closest, and where as many of them agree as a large family has, so that it may be all that was
  /// seen, with others of every distance. `start`: of which, so that members of a family are linked to different ones.
  ComparedOfPicture compared_with(int64_t picture, const std::vector<Candidate>& candidates, size_t start) const {
    ComparedOfPicture compared;
    size_t agreeing = 0;
    const auto compare = [&](const Candidate& candidate) {
      compared.with.push_back({candidate.picture, 1 - agreement(picture, candidate)});
      if (compared.with.back().lacking <= 1 - kLeastAgreement) ++agreeing;
    };
    const size_t closest = std::min(kClosest, candidates.size()), others = candidates.size() - closest;
    for (size_t i = 0; i < closest; ++i) compare(candidates[i]);
    compared.is_all = others == 0 || agreeing >= kRival;
    if (!compared.is_all) return compared;
    const size_t step = others / kFurther + 1;
    for (size_t i = start % step; i < others; i += step) compare(candidates[closest + i]);
    return compared;
  }

  float agreement(int64_t picture, const Candidate& candidate) const {
    const Picture &original = pictures_[static_cast<size_t>(picture)],
                  &copy = pictures_[static_cast<size_t>(candidate.picture)];
    return static_cast<float>(aligned_agreement(original.thumbnail, copy.thumbnail, candidate.window,
                                                std::min(original.shorter_side, copy.shorter_side)));
  }

  /// The distance of unrelated pictures: exceeded by 99 in 100 pairs drawn at random that are no copies. In a small
  /// set, copies without a gap behind them can be more than a hundredth of all pairs: by correspondingly fewer.
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
    std::sort(lacking.begin(), lacking.end());
    return rival_behind_copies(lacking, static_cast<size_t>(kStrangers * std::clamp(copies, 0.01, 0.5)),
                               lacking.back());
  }

  struct Rivals {
    float any = 1;        ///< the distance of the eighth candidate that is no copy; 1 where there are fewer
    float unrelated = 1;  ///< the same where copies are no large family: of the eighth candidate
  };
  static Rivals rivals_of(const ComparedOfPicture& compared, float strangers) {
    std::vector<float> lacking;
    for (const Compared& with : compared.with) lacking.push_back(with.lacking);
    std::sort(lacking.begin(), lacking.end());
    Rivals rivals;
    rivals.any = std::min(strangers, rival_behind_copies(lacking, kRival, compared.is_all ? 1 : lacking.back()));
    const bool is_large = lacking.size() >= kRival && lacking[kRival - 1] <= 1 - kLeastAgreement;
    rivals.unrelated = is_large ? std::min(strangers, lacking[kRival - 1]) : rivals.any;
    return rivals;
  }

  static float allowed(float rival) {
    return std::min(1 - kLeastAgreement, std::max(kAlwaysEqual, kShareOfRival * rival));
  }

  /// The large family that most of the pictures belong to that agree with this one; -1: none. Similar pictures that
  /// are no copies have as similar ones outside of any family.
  static int64_t family_of(const ComparedOfPicture& compared, Families& families) {
    std::unordered_map<int64_t, size_t> members;
    size_t agreeing = 0;
    for (const Compared& with : compared.with) {
      if (with.lacking > 1 - kLeastAgreement) continue;
      ++agreeing;
      ++members[families.of(with.picture)];
    }
    for (const auto& [family, count] : members) {
      if (count >= kRival && 2 * count > agreeing) return family;
    }
    return -1;
  }

  static std::vector<NearPair> standing_out(const std::vector<ComparedOfPicture>& by_picture, float strangers) {
    std::vector<Rivals> rivals;
    for (const ComparedOfPicture& compared : by_picture) rivals.push_back(rivals_of(compared, strangers));
    Families families(by_picture.size());
    for (size_t i = 0; i < by_picture.size(); ++i) {
      for (const Compared& with : by_picture[i].with) {
        const float rival = std::min(rivals[i].any, rivals[static_cast<size_t>(with.picture)].any);
        if (with.lacking <= allowed(rival)) families.join(static_cast<int64_t>(i), with.picture);
      }
    }
    std::vector<NearPair> pairs;
    for (size_t i = 0; i < by_picture.size(); ++i) {
      const int64_t family = family_of(by_picture[i], families);
      for (const Compared& with : by_picture[i].with) {
        const float rival = std::min(rivals[i].unrelated, rivals[static_cast<size_t>(with.picture)].unrelated);
        const bool is_relative = with.lacking <= 1 - kLeastAgreement && families.of(with.picture) == family;
        if (!is_relative && with.lacking > allowed(rival)) continue;
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
  std::vector<uint64_t> hashes_;   ///< hashes of their windows
};

}  // namespace

std::vector<NearPair> near_pairs(const std::vector<Picture>& pictures, int64_t threads) {
  return Search(pictures).run(threads);
}

}  // namespace stoker::data
