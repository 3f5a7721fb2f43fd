// SPDX-License-Identifier: Apache-2.0
#include "proof/standing.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "core/system/machine.h"
#include "proof/kept_proofs.h"
#include "proof/operation/operation.h"

namespace stoker::proof {
namespace {

using core::format;

Standing now;
std::vector<core::Json> proven;  // requests of one pass each

/// One pass of a request by itself.
Request of_pass(const Request& request, const Pass& pass) {
  Request one = request;
  one.passes = {pass};
  return one;
}

/// The key of a request.
std::vector<core::Json> by_pass(const Request& request) {
  std::vector<core::Json> each;
  for (const Pass& pass : request.passes) each.push_back(of_pass(request, pass));
  return each;
}

bool is_proven(const core::Json& pass) { return std::find(proven.begin(), proven.end(), pass) != proven.end(); }

/// Without passes that this process has proven, and without doubles.
Request open_part(const Request& request) {
  Request open = request;
  open.passes.clear();
  const std::vector<core::Json> each = by_pass(request);
  for (size_t i = 0; i < each.size(); ++i) {
    const Pass& pass = request.passes[i];
    if (is_proven(each[i]) || std::find(open.passes.begin(), open.passes.end(), pass) != open.passes.end()) continue;
    open.passes.push_back(pass);
  }
  return open;
}

double patience_seconds() {
  const char* const text = std::getenv("STOKER_PROVE_PATIENCE");  // seconds; for tests of libraries that hang
  const double seconds = text == nullptr ? 0 : std::strtod(text, nullptr);
  return seconds > 0 ? seconds : ProverSettings().patience_seconds;
}

bool has_hung(const Proof& proof) {
  return std::any_of(proof.faults.begin(), proof.faults.end(),
                     [](const Fault& fault) { return fault.what.rfind("no answer", 0) == 0; });
}

Proof proven_now(const Request& request, const Remedy& before, const ProverSettings& settings) {
  try {
    return prove(request, before, settings);
  } catch (const core::Error& error) {  // no other process can be started here
    if (error.kind() != core::ErrorKind::os) throw;
    Proof proof;
    proof.remedy = before;
    proof.obstacle = error.what();
    return proof;
  }
}

/// The proofs of earlier starts for all passes together; nothing where that is not kept, and then `open` loses the
/// passes that were proven by themselves without a remedy: with one all are proven together.
std::optional<Proof> known(const KeptProofs& kept, const core::Json& machine, const Remedy& before, Request& open) {
  if (auto all = kept.find(machine, open, before)) return all;
  std::vector<Pass> others;
  for (const Pass& pass : open.passes) {
    const auto one = kept.find(machine, of_pass(open, pass), before);
    if (!one || !(one->remedy == before)) others.push_back(pass);
  }
  open.passes = others;
  return std::nullopt;
}

Proof found(Request request, Effort effort, const std::string& program, const std::string& device_text,
            bool may_limit_isa) {
  const Remedy before = now.remedy;
  const KeptProofs kept;
  const core::Json machine = computing_machine(program, device_text);
  if (effort == Effort::automatic) {
    if (const auto all = known(kept, machine, before, request)) return *all;
    if (request.passes.empty()) {
      Proof parts;
      parts.remedy = before;
      parts.is_right = parts.was_kept = true;
      return parts;
    }
  }
  ProverSettings settings;
  settings.program = program;
  settings.compares_all = effort == Effort::full;
  settings.may_limit_isa = may_limit_isa;
  settings.patience_seconds = patience_seconds() * (settings.compares_all ? 60 : 1);
  Proof proof = proven_now(request, before, settings);
  if (!proof.is_right || has_hung(proof)) return proof;  // a suspended machine looks like a hang
  kept.keep(machine, request, before, proof);
  if (proof.remedy == before && proof.untried == 0) {
    Proof part = proof;
    part.operations = 0;  // not known of one pass
    for (const Pass& pass : request.passes) kept.keep(machine, of_pass(request, pass), before, part);
  }
  return proof;
}

[[noreturn]] void refuse(const Proof& proof) {
  const Fault& fault = proof.faults.front();
  const std::string others = proof.faults.size() > 1
                                 ? format(", and {} more", core::counted(int64_t(proof.faults.size()) - 1, "operation"))
                                 : "";
  const bool is_reduced = fault.operation.find("float16") != std::string::npos;  // bfloat16, too
  throw core::Error(core::ErrorKind::backend,
                    format("{} computes wrongly on this machine: {}: {}{}; no alternative is right",
                           fault.library.empty() ? "a library" : fault.library, fault.operation, fault.what, others),
                    format("{}install another version of the library or use another machine; --prove-backend off "
                           "trains on wrong numbers, which is recorded",
                           is_reduced ? "train in float32 with --no-amp, " : ""));
}

void take(const Proof& proof) {
  if (!proof.obstacle.empty()) now.unproven = proof.obstacle;
  if (!proof.is_right && !proof.faults.empty()) refuse(proof);
  if (!proof.is_right) return;
  now.was_kept = proof.was_kept && (now.operations == 0 || now.was_kept);
  now.faults.insert(now.faults.end(), proof.faults.begin(), proof.faults.end());
  now.operations += proof.operations;
  now.untried += proof.untried;
  now.seconds += proof.was_kept ? 0 : proof.seconds;
  if (!proof.was_kept) {
    now.peak_bytes = std::max(now.peak_bytes, proof.peak_bytes + core::read_process_memory().resident_bytes);
  }
  if (proof.remedy == now.remedy) return;
  now.remedy = proof.remedy;
  apply(now.remedy);
}

}  // namespace

const Standing& standing() { return now; }

void apply_known_remedy() {
  if (!now.remedy.is_empty() || known_remedy().is_empty()) return;
  now.remedy = known_remedy();
  apply(now.remedy);
}

void prove_and_apply(const Request& request, Effort effort, const std::string& program, const std::string& device_text,
                     bool may_limit_isa) {
  now.was_off = effort == Effort::off;
  if (now.was_off) return;
  apply_known_remedy();
  if (program.empty()) {
    now.unproven = "stoker-prove is not installed beside this program";
    return;
  }
  const Request open = open_part(request);
  if (open.passes.empty()) return;
  const Proof proof = found(open, effort, program, device_text, may_limit_isa);
  take(proof);
  for (core::Json& pass : by_pass(open)) proven.push_back(std::move(pass));
}

std::string standing_json() { return core::Json(now).dump(); }

void follow(const std::string& json) {
  constexpr int kMostNesting = 16;
  now = core::parse_json(json, "what rank 0 has proven", kMostNesting).get<Standing>();
  now.peak_bytes = 0;  // of the other rank
  if (!now.remedy.is_empty()) apply(now.remedy);
}

std::string summary_text(const Standing& standing) {
  if (standing.was_off) return "not proven: --prove-backend off";
  if (!standing.unproven.empty()) return "not proven: " + standing.unproven;
  std::string text = standing.operations > 0 ? format("{} agree", core::counted(standing.operations, "operation"))
                                             : "operations agree";
  text += " with double-precision loops, ";
  text += standing.was_kept ? "checked at an earlier start"
                            : format("checked in {}", core::duration_text(standing.seconds));
  if (standing.untried > 0) text += format(", {} not tried", standing.untried);
  const std::string remedy = text_of(standing.remedy);
  return remedy.empty() ? text : text + "; " + remedy;
}

std::string warning_text(const Standing& standing) {
  if (standing.remedy.is_empty()) return "";
  const std::string instead = text_of(standing.remedy);
  if (standing.faults.empty()) {
    return format(
        "{} takes the caches of this processor, which the hypervisor hides, for 1 byte each and would compute "
        "wrongly: {}",
        onednn_text(), instead);
  }
  const Fault& fault = standing.faults.front();
  const std::string others =
      standing.faults.size() > 1
          ? format(" (and {} more, see -v)", core::counted(int64_t(standing.faults.size()) - 1, "operation"))
          : "";
  return format("{} computes wrongly on this machine: {}: {}{}; computed {} instead",
                fault.library.empty() ? "a library" : fault.library, fault.operation, fault.what, others, instead);
}

}  // namespace stoker::proof
