// SPDX-License-Identifier: Apache-2.0
#include "proof/proof.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>

#include "core/log.h"
#include "proof/trial.h"

namespace stoker::proof {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// The best remedy so far.
struct Best {
  Remedy remedy;
  double seconds = kNoLimit;  ///< that all calls of the passes take with it

  bool is_found() const { return seconds < kNoLimit; }
  void consider(const Remedy& other, double other_seconds) {
    if (other_seconds >= seconds) return;
    remedy = other;
    seconds = other_seconds;
  }
};

class Prover {
 public:
  Prover(const Request& request, const Remedy& before, const ProverSettings& settings)
      : request_(request), before_(before), settings_(settings) {}

  Proof run() {
    const auto begin = std::chrono::steady_clock::now();
    Proof proof = first_trial();
    if (!proof.is_right && !proof.faults.empty()) look_for_remedy(proof);
    proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return proof;
  }

 private:
  Proof first_trial() {
    first_ = tried(request_, before_, settings_);
    for (auto& [id, done] : first_.operations) {
      if (!done.was_refused) continue;
      core::log_debug("not proven: {}: {}", done.text, done.fault);
      refused_.insert(id);
    }
    for (const std::string& id : refused_) first_.operations.erase(id);
    Proof proof;
    proof.remedy = before_;
    proof.is_right = first_.is_right();
    proof.obstacle = first_.obstacle;
    proof.operations = static_cast<int64_t>(first_.operations.size());
    proof.untried = static_cast<int64_t>(refused_.size());
    proof.peak_bytes = first_.peak_bytes;
    for (const auto& [key, done] : first_.operations) {
      proof.worst_ratio = std::max(proof.worst_ratio, done.is_right ? done.ratio : 0);
      if (!done.is_right) proof.faults.push_back({done.text, done.library, done.fault});
    }
    // The first is the one that is named.
    std::stable_partition(proof.faults.begin(), proof.faults.end(),
                          [](const Fault& fault) { return fault.what != kUntried; });
    if (!first_.crash.empty()) proof.faults.push_back({first_.crash, "", "the passes of the network end so"});
    return proof;
  }

  void look_for_remedy(Proof& proof) {
    for (const Fault& fault : proof.faults) core::log_debug("{}: {}: {}", fault.library, fault.operation, fault.what);
    Best best;
    if (first_.crash.empty() && !first_.was_given_up) consider_ways(best);
    if (settings_.may_limit_isa && before_.isa.empty() && request_.device == "cpu") {
      for (const char* const isa : {"AVX512_CORE", "AVX2", "SSE41"}) {
        Remedy remedy = before_;
        remedy.isa = isa;
        consider_whole(remedy, best);
      }
    }
    if (!before_.onednn_off) {
      Remedy remedy = before_;
      remedy.onednn_off = true;
      consider_whole(remedy, best);
    }
    proof.is_right = best.is_found();
    if (best.is_found()) proof.remedy = best.remedy;
  }

  /// The results of one alternative for the wrong operations of a family.
  struct OfFamily {
    std::set<std::string> right;  ///< operations that are right in this way
    double seconds = 0;
  };

  /// Other ways for the operations that are wrong, one kind of way at a time, then all together.
  void consider_ways(Best& best) {
    std::map<std::string, std::set<std::string>> open;  // by family
    for (const auto& [id, done] : first_.operations) {
      if (!done.is_right) open[done.family].insert(id);
    }
    Remedy remedy = before_;
    std::map<std::string, double> fastest;
    for (const Alternative way : {Alternative::sliced, Alternative::without_onednn, Alternative::in_float32,
                                  Alternative::own_product, Alternative::own_sums}) {
      for (const auto& [family, result] : in_way(way, open)) {
        const auto found = fastest.find(family);
        const bool is_faster = found == fastest.end() || result.seconds < found->second;
        if (result.right != open[family] || !is_faster) continue;
        fastest[family] = result.seconds;
        remedy.ways[family] = way;
      }
    }
    if (fastest.size() == open.size()) consider_whole(remedy, best);
  }

  std::map<std::string, OfFamily> in_way(Alternative way, const std::map<std::string, std::set<std::string>>& open) {
    Remedy trying = before_;
    std::set<std::string> ids;
    for (const auto& [family, some] : open) {
      if (first_.operations.at(*some.begin()).ways.count(way) == 0) continue;
      ids.insert(some.begin(), some.end());
      trying.ways[family] = way;
    }
    std::map<std::string, OfFamily> results;
    if (ids.empty()) return results;
    for (const auto& [id, done] : tried(request_, trying, settings_, ids).operations) {
      if (!done.is_right) continue;
      results[done.family].right.insert(id);
      results[done.family].seconds += done.seconds * static_cast<double>(done.calls);
    }
    return results;
  }

  void consider_whole(const Remedy& remedy, Best& best) {
    Trial trial = tried(request_, remedy, settings_, {}, {best.seconds, /*ends_at_fault=*/true});
    for (const std::string& id : refused_) trial.operations.erase(id);
    if (trial.is_right()) best.consider(remedy, trial.seconds());
  }

  const Request& request_;
  const Remedy& before_;
  const ProverSettings& settings_;
  Trial first_;
  std::set<std::string> refused_;  ///< operations that LibTorch itself refuses, whatever the remedy
};

}  // namespace

Proof prove(const Request& request, const Remedy& before, const ProverSettings& settings) {
  return Prover(request, before, settings).run();
}

}  // namespace stoker::proof
