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
    if (!proof.is_right && proof.obstacle.empty()) look_for_remedy(proof);
    proof.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return proof;
  }

 private:
  Proof first_trial() {
    first_ = tried(request_, before_, settings_, {}, kNoLimit);
    Proof proof;
    proof.remedy = before_;
    proof.is_right = first_.is_right();
    proof.obstacle = first_.obstacle;
    proof.operations = static_cast<int64_t>(first_.operations.size());
    proof.peak_bytes = first_.peak_bytes;
    for (const auto& [key, done] : first_.operations) {
      proof.worst_ratio = std::max(proof.worst_ratio, done.is_right ? done.ratio : 0);
      if (!done.is_right) proof.faults.push_back({done.text, done.library, done.fault});
    }
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

  /// Other ways for the operations that are wrong, one kind of way at a time, then all together.
  void consider_ways(Best& best) {
    std::set<std::string> open;
    Remedy remedy = before_;
    double seconds = 0;
    for (const auto& [key, done] : first_.operations) {
      if (done.is_right) {
        seconds += done.seconds * static_cast<double>(done.calls);
      } else {
        open.insert(key);
      }
    }
    std::map<std::string, double> fastest;
    for (const Way way : {Way::sliced, Way::without_onednn, Way::own_product}) {
      Remedy trying = before_;
      std::set<std::string> keys;
      for (const std::string& id : open) {
        const std::string& key = first_.operations.at(id).key;
        const std::vector<Way> ways = ways_for(key);
        if (std::find(ways.begin(), ways.end(), way) == ways.end()) continue;
        keys.insert(id);
        trying.ways[key] = way;
      }
      if (keys.empty()) continue;
      const Trial trial = tried(request_, trying, settings_, keys, kNoLimit);
      for (const auto& [key, done] : trial.operations) {
        if (!done.is_right) continue;
        const double all_calls = done.seconds * static_cast<double>(done.calls);
        const auto found = fastest.find(key);
        if (found != fastest.end() && found->second <= all_calls) continue;
        fastest[key] = all_calls;
        remedy.ways[done.key] = way;
      }
    }
    if (fastest.size() < open.size()) return;
    for (const auto& [key, all_calls] : fastest) seconds += all_calls;
    const Trial together = tried(request_, remedy, settings_, {}, kNoLimit);
    if (together.is_right()) best.consider(remedy, std::min(seconds, together.seconds()));
  }

  void consider_whole(const Remedy& remedy, Best& best) {
    const Trial trial = tried(request_, remedy, settings_, {}, best.seconds);
    if (trial.is_right()) best.consider(remedy, trial.seconds());
  }

  const Request& request_;
  const Remedy& before_;
  const ProverSettings& settings_;
  Trial first_;
};

}  // namespace

Proof prove(const Request& request, const Remedy& before, const ProverSettings& settings) {
  return Prover(request, before, settings).run();
}

core::Json to_json(const Proof& proof) {
  core::Json faults = core::Json::array();
  for (const Fault& fault : proof.faults) {
    faults.push_back({{"operation", fault.operation}, {"library", fault.library}, {"what", fault.what}});
  }
  return {{"is_right", proof.is_right}, {"remedy", to_json(proof.remedy)}, {"faults", faults},
          {"obstacle", proof.obstacle}, {"operations", proof.operations},  {"worst_ratio", proof.worst_ratio},
          {"seconds", proof.seconds},   {"peak_bytes", proof.peak_bytes}};
}

Proof proof_from_json(const core::Json& json) {
  Proof proof;
  json.at("is_right").get_to(proof.is_right);
  proof.remedy = remedy_from_json(json.at("remedy"));
  for (const core::Json& fault : json.at("faults")) {
    proof.faults.push_back({fault.at("operation").get<std::string>(), fault.at("library").get<std::string>(),
                            fault.at("what").get<std::string>()});
  }
  json.at("obstacle").get_to(proof.obstacle);
  json.at("operations").get_to(proof.operations);
  json.at("worst_ratio").get_to(proof.worst_ratio);
  json.at("seconds").get_to(proof.seconds);
  json.at("peak_bytes").get_to(proof.peak_bytes);
  return proof;
}

}  // namespace stoker::proof
