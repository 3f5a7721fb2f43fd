// SPDX-License-Identifier: Apache-2.0
#include "observe/diagnosis/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace stoker::observe {
namespace {

using engine::StepPart;

constexpr double kMs = 1e-3;

void spread(core::Spread& spread, double mean_ms) {
  spread = {100, mean_ms * kMs, 1.1 * mean_ms * kMs, 1.5 * mean_ms * kMs};
}

/// A run of 100 updates of 64 images on two CPUs; times in milliseconds per update. The network takes 60 ms
/// with one thread, the workers as long as the test sets.
class FactsOf {
 public:
  FactsOf() {
    facts_.cpus = 2;
    facts_.batch_size = 64;
    facts_.threads = 1;
    facts_.prefetch_factor = 4;
    facts_.images_per_epoch = 6400;
    facts_.epochs_left = 3;
    facts_.free_ram_bytes = 16e9;
    facts_.stored_bytes = 0.7e9;
    facts_.pixel_bytes = 30e9;  // does not fit
    network(60);
    workers(2).reads(2).decodes(60).resizes(20);
  }

  FactsOf& network(double ms) {
    forward_ = 0.35 * ms;
    backward_ = 0.6 * ms;
    optimizer_ = 0.05 * ms;
    return *this;
  }
  FactsOf& workers(int count) {
    facts_.times.loader.num_workers = count;
    return *this;
  }
  FactsOf& reads(double ms) {
    read_ = ms;
    return *this;
  }
  FactsOf& decodes(double ms) {
    decode_ = ms;
    return *this;
  }
  FactsOf& resizes(double ms) {
    resize_ = ms;
    return *this;
  }
  FactsOf& augments(double ms) {
    augment_ = ms;
    return *this;
  }
  FactsOf& idles(double ms) {
    idle_ = ms;
    return *this;
  }
  FactsOf& waits(double ms) {
    wait_ = ms;
    return *this;
  }
  FactsOf& copies(double ms) {
    copy_ = ms;
    return *this;
  }
  FactsOf& reports(double ms) {
    report_ = ms;
    return *this;
  }
  FactsOf& exchanges(double ms) {
    exchange_ = ms;
    return *this;
  }
  /// By their own work; the rest of an update each waits for the others.
  FactsOf& ranks(std::vector<double> work_ms) {
    rank_work_ = std::move(work_ms);
    return *this;
  }
  FactsOf& on_one_host() {
    one_host_ = true;
    return *this;
  }
  FactsOf& saves(double ms) {
    save_ = ms;
    return *this;
  }
  /// Reading waits and needs no CPU.
  FactsOf& storage_is_slow() {
    read_cpu_share_ = 0.05;
    return *this;
  }
  FactsOf& computing_cpu(double ms) {
    computing_cpu_ = ms;
    return *this;
  }
  FactsOf& with(const std::function<void(DiagnosisFacts&)>& change) {
    change(facts_);
    return *this;
  }

  DiagnosisFacts made() const {
    DiagnosisFacts facts = facts_;
    engine::StepTimings& times = facts.times;
    const double computing = forward_ + backward_ + optimizer_;
    const double update = wait_ + copy_ + computing + exchange_ + report_ + save_;
    times.updates = 100;
    times.wall_seconds = times.seconds = 100 * update * kMs;
    spread(times.update, update);
    spread(times.parts[StepPart::wait], wait_);
    spread(times.parts[StepPart::copy], copy_);
    spread(times.parts[StepPart::forward], forward_);
    spread(times.parts[StepPart::backward], backward_);
    spread(times.parts[StepPart::optimizer], optimizer_);
    spread(times.parts[StepPart::exchange], exchange_);
    spread(times.parts[StepPart::report], report_);
    double least = update;  // by default the last to come is always the same
    for (const double work : rank_work_) least = std::min(least, update - work);
    for (const double work : rank_work_) {
      const std::string host = "node-" + (one_host_ ? "0" : std::to_string(facts.ranks.size()));
      facts.ranks.push_back({host, update * kMs, wait_ * kMs, (update - work) * kMs, work * kMs, least * kMs});
    }
    spread(times.parts[StepPart::save], save_);
    data::LoaderStats& loader = times.loader;
    loader.read_seconds = 100 * read_ * kMs;
    loader.decode_seconds = 100 * decode_ * kMs;
    loader.resize_seconds = 100 * resize_ * kMs;
    loader.augment_seconds = 100 * augment_ * kMs;
    loader.worker_idle_seconds = 100 * idle_ * kMs;
    loader.worker_cpu_seconds =
        loader.num_workers > 0 ? 100 * (read_cpu_share_ * read_ + decode_ + resize_ + augment_) * kMs : 0;
    const double decodes_itself = loader.num_workers > 0 ? 0 : decode_ + resize_ + augment_;
    times.training_cpu_seconds = 100 * (computing_cpu_ > 0 ? computing_cpu_ : computing + copy_ + decodes_itself) * kMs;
    times.process_cpu_seconds = times.training_cpu_seconds + loader.worker_cpu_seconds;
    const double per_image = 1.0 / static_cast<double>(facts.batch_size);
    spread(times.sample.read, read_ * per_image);
    spread(times.sample.decode, decode_ * per_image);
    spread(times.sample.resize, resize_ * per_image);
    spread(times.sample.augment, augment_ * per_image);
    return facts;
  }
  Diagnosis diagnosed() const { return diagnose(made()); }

 private:
  DiagnosisFacts facts_;
  double read_ = 0, decode_ = 0, resize_ = 0, augment_ = 0, idle_ = 0, wait_ = 0, copy_ = 0, report_ = 0, save_ = 0;
  double exchange_ = 0;
  bool one_host_ = false;
  std::vector<double> rank_work_;  ///< ms per update
  double forward_ = 0, backward_ = 0, optimizer_ = 0, computing_cpu_ = 0, read_cpu_share_ = 1;
};

struct Golden {
  const char* name;
  FactsOf facts;
  Verdict verdict;
  const char* option;
  const char* value;
  double gain_percent;  ///< within 5 of it
};

std::vector<Golden> table() {
  std::vector<Golden> rows;
  const auto add = [&](const char* name, const FactsOf& facts, Verdict verdict, const char* option, const char* value,
                       double gain) {
    rows.push_back({name, facts, verdict, option, value, gain});
  };
  add("one worker with work for two, a network that waits for half of the time",
      FactsOf().network(40).workers(1).waits(80).reads(5).decodes(95).resizes(20), Verdict::workers, "--num-workers",
      "2", 50);
  add("the training thread decodes", FactsOf().network(60).workers(0).waits(80), Verdict::workers, "--num-workers", "2",
      100);
  add("huge files: both workers decode all the time", FactsOf().network(20).waits(90).decodes(180).resizes(20),
      Verdict::decode, "", "", 95);
  add("huge files that fit in memory once decoded",
      FactsOf().network(20).waits(90).decodes(180).resizes(20).with([](DiagnosisFacts& f) { f.pixel_bytes = 2e9; }),
      Verdict::decode, "--cache", "ram", 267);  // resizing is left, for twice as long
  add("heavy augmentation",
      FactsOf().network(20).waits(90).decodes(30).resizes(10).augments(160).with([](DiagnosisFacts& f) {
        f.augmentations = {{"--gaussian-blur", "0"}};
      }),
      Verdict::augmentation, "--gaussian-blur", "0", 265);
  add("storage that answers late, epoch after epoch",
      FactsOf().network(20).waits(140).reads(300).decodes(20).resizes(0).storage_is_slow(), Verdict::storage, "--cache",
      "compressed", 482);
  add("the same in the first epoch, for data that memory will hold",
      FactsOf().network(20).waits(140).reads(300).decodes(20).resizes(0).storage_is_slow().with(
          [](DiagnosisFacts& f) { f.first_epoch = true; }),
      Verdict::cold_cache, "", "", 482);
  add("storage that answers late, data larger than memory",
      FactsOf().network(20).waits(140).reads(300).decodes(20).resizes(0).storage_is_slow().with(
          [](DiagnosisFacts& f) { f.stored_bytes = 1e12; }),
      Verdict::storage, "--num-workers", "8", 255);
  add("bursts: workers idle while the network waits",
      FactsOf().network(60).waits(40).decodes(60).resizes(20).idles(110).with(
          [](DiagnosisFacts& f) { f.prefetch_factor = 1; }),
      Verdict::prefetch, "--prefetch-factor", "8", 28);
  add("somebody else's programs on both CPUs",
      FactsOf().network(110).computing_cpu(60).waits(30).decodes(60).resizes(20).with([](DiagnosisFacts& f) {
        f.resources.other_cpus = 1.0;
        f.resources.threads_without_cpu = 1.2;
      }),
      Verdict::contention, "", "", 100);
  add("threads of the network wait for one that another process keeps off its CPU",
      FactsOf().network(3000).with([](DiagnosisFacts& f) {
        f.threads = 2;
        f.resources.other_cpus = 0.9;
        f.one_thread_seconds = 0.02 * 2.85;
      }),
      Verdict::competing_threads, "--threads", "1", 2225);
  add("sixteen threads on two CPUs", FactsOf().network(400).with([](DiagnosisFacts& f) {
    f.threads = 16;
    f.cpus_seconds = 0.38 * 0.3 / 1.8;
  }),
      Verdict::oversubscribed_threads, "--threads", "2", 271);
  add("pageable memory",
      FactsOf().network(20).copies(60).decodes(20).resizes(5).with([](DiagnosisFacts& f) { f.pin_memory = false; }),
      Verdict::copy, "--pin-memory", "", 200);
  add("a report after every update", FactsOf().network(4).reports(6).decodes(2).resizes(1), Verdict::sync,
      "--report-every", "5s", 150);
  add("slow reports every 5 seconds, the default",
      FactsOf().network(4).reports(6).decodes(2).resizes(1).with([](DiagnosisFacts& f) { f.report_seconds = 5; }),
      Verdict::sync, "--report-every", "1m", 150);
  add("a checkpoint every few updates", FactsOf().network(20).saves(20).decodes(2).resizes(1), Verdict::saving,
      "--save-every", "30m", 100);
  add("a batch of two images", FactsOf().network(10).decodes(1).resizes(0.2).with([](DiagnosisFacts& f) {
    f.batch_size = 2;
    f.overhead_seconds = 7 * kMs;
  }),
      Verdict::launch, "--batch-size", "64", 237);
  add("a network that computes all the time, in float32",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) { f.bfloat16_speed = 2.5; }),
      Verdict::device, "--amp", "", 64);
  add("bfloat16 that this CPU only emulates",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.amp = true;
        f.network_bfloat16_speed = 0.4;
      }),
      Verdict::device, "--no-amp", "", 148);
  add("a network that trains faster in bfloat16",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.network_bfloat16_speed = 2;
        f.bfloat16_speed = 1.1;
      }),
      Verdict::device, "--amp", "", 99);
  add("a layout that was requested and is the slower one",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.channels_last = false;
        f.other_layout_speed = 2;
      }),
      Verdict::device, "--channels-last", "", 99);
  add("a reference BLAS, which multiplies a ninth of the operations",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.reference_blas = true;
        f.compute.product_share = 1.0 / 9;
      }),
      Verdict::device, "", "", 99);
  add("a reference BLAS without work",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) { f.reference_blas = true; }),
      Verdict::nothing, "", "", 0);
  add("a network that does not, although convolutions are",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.network_bfloat16_speed = 0.6;
        f.bfloat16_speed = 2.5;
      }),
      Verdict::nothing, "", "", 0);
  add("one thread on two CPUs of which one idles",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) { f.cpus_seconds = 0.285 / 1.8; }),
      Verdict::device, "--threads", "2", 76);
  add("four replicas on four CPUs, of which three idle",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.cpus = 4;
        f.replicas = 4;
        f.cpus_seconds = 0.285 / 3.5;
      }),
      Verdict::nothing, "", "", 0);
  add("ranks that wait for their sums for half of the time",
      FactsOf().network(50).decodes(10).resizes(2).exchanges(50).ranks({50, 50}), Verdict::exchange,
      "--accumulation-steps", "8", 78);
  add("the same, of an epoch that has few updates as it is",
      FactsOf().network(20).decodes(5).resizes(1).exchanges(80).ranks({20, 20, 20, 20}).with([](DiagnosisFacts& f) {
        f.cpus = 4;
        f.images_per_epoch = 600;
      }),
      Verdict::exchange, "--devices", "2", 7);
  add("a rank that works twice as long as the others",
      FactsOf().network(50).decodes(10).resizes(2).exchanges(52).ranks({50, 100, 50}), Verdict::unequal_ranks, "", "",
      96);
  add("ranks of which none waits for the other for long",
      FactsOf().network(95).decodes(10).resizes(2).exchanges(5).ranks({95, 97}), Verdict::nothing, "", "", 0);
  add("a GPU that is too hot",
      FactsOf().network(100).computing_cpu(10).decodes(20).resizes(5).with([](DiagnosisFacts& f) {
        f.times.has_device = true;
        f.times.lag_seconds = 1;  // some updates are queued
        f.on_cpu = false;
        f.resources.gpu.clock_reasons = 0x40;
        f.resources.gpu.clock_mhz = 990;
        f.resources.gpu.highest_clock_mhz = 1980;
      }),
      Verdict::throttled, "", "", 100);
  add("all well: bfloat16, threads as they should be",
      FactsOf().network(300).decodes(30).resizes(10).with([](DiagnosisFacts& f) {
        f.amp = true;
        f.bfloat16_speed = 2.5;
      }),
      Verdict::nothing, "", "", 0);
  add("no update yet", FactsOf().with([](DiagnosisFacts& f) { f.images_per_epoch = 0; }).network(0).decodes(0),
      Verdict::nothing, "", "", 0);
  return rows;
}

TEST(DiagnosisTest, EveryBottleneckHasItsVerdictItsOptionAndItsGain) {
  for (const Golden& row : table()) {
    const Diagnosis found = row.facts.diagnosed();
    EXPECT_STREQ(verdict_text(found.verdict), verdict_text(row.verdict)) << row.name << ": " << diagnosis_text(found);
    EXPECT_EQ(found.option, row.option) << row.name;
    EXPECT_EQ(found.value, row.value) << row.name;
    EXPECT_NEAR(found.gain_percent, row.gain_percent, std::max(5.0, 0.05 * row.gain_percent)) << row.name;
    EXPECT_FALSE(row.verdict != Verdict::nothing && found.evidence.empty()) << row.name;
  }
}

TEST(DiagnosisTest, TheSlowRankIsNamedWithItsHost) {
  const Diagnosis found = FactsOf().network(50).decodes(10).resizes(2).exchanges(52).ranks({50, 100, 50}).diagnosed();
  EXPECT_EQ(
      diagnosis_text(found),
      "unequal ranks (rank 1 on node-1 works 100ms on each update, the others 50ms on average): look at rank 1 on "
      "node-1: another process, fewer or slower CPUs; or run without it; predicted 96% more images/s");
}

TEST(DiagnosisTest, WhatTheScatterOfUpdatesCouldBeIsNoVerdict) {
  DiagnosisFacts facts =
      FactsOf().network(50).decodes(10).resizes(2).exchanges(52).ranks({50, 100, 50}).made();  // 102 ms, 50 too many
  facts.times.update.deviation_seconds = 200 * kMs;  // two standard errors of the mean of 100 updates: 40 ms
  EXPECT_EQ(diagnose(facts).verdict, Verdict::unequal_ranks);
  facts.times.update.deviation_seconds = 300 * kMs;
  const Diagnosis found = diagnose(facts);
  EXPECT_EQ(found.verdict, Verdict::nothing) << diagnosis_text(found);
  EXPECT_NE(diagnosis_text(found).find("gains below 143% do not show in 100 updates"), std::string::npos)
      << diagnosis_text(found);
}

/// One thread that got its CPU for a fifth of the time: what else takes time is assumed to shrink with it.
TEST(DiagnosisTest, NoGainIsBeyondWhatTheNamedCauseTakes) {
  const Diagnosis found = FactsOf().network(90).computing_cpu(10).reports(10).decodes(2).resizes(1).diagnosed();
  EXPECT_EQ(found.verdict, Verdict::sync);
  EXPECT_NEAR(found.gain_percent, 100 * (100.0 / 90 - 1), 0.1) << diagnosis_text(found);
  DiagnosisFacts ranks = FactsOf().network(50).decodes(10).resizes(2).exchanges(52).ranks({50, 100, 50}).made();
  for (engine::RankTimes& rank : ranks.ranks) rank.exchange = std::min(rank.exchange, 22 * kMs);
  const Diagnosis slow = diagnose(ranks);
  EXPECT_NEAR(slow.gain_percent, 100 * (102.0 / 82 - 1), 0.1) << "ranks wait for it no longer than 20 ms";
}

TEST(DiagnosisTest, OtherRanksOfTheMachineAreNoOtherProcesses) {
  FactsOf facts = FactsOf().network(110).computing_cpu(60).waits(30).decodes(60).resizes(20).ranks({140, 140});
  facts.with([](DiagnosisFacts& f) {
    f.resources.other_cpus = 1.0;
    f.resources.threads_without_cpu = 1.2;
  });
  EXPECT_EQ(facts.diagnosed().verdict, Verdict::contention) << "the other rank is on another machine";
  EXPECT_NE(facts.on_one_host().diagnosed().verdict, Verdict::contention);
}

TEST(DiagnosisTest, WhatOtherProcessesTakeHidesNoWaitingForRanks) {
  const auto busy_machine = [](DiagnosisFacts& f) {
    f.cpus = 1;
    f.resources.other_cpus = 0.9;
  };
  EXPECT_EQ(
      FactsOf().network(50).decodes(10).resizes(2).exchanges(50).ranks({50, 50}).with(busy_machine).diagnosed().verdict,
      Verdict::exchange);
  EXPECT_EQ(FactsOf()
                .network(50)
                .decodes(10)
                .resizes(2)
                .exchanges(52)
                .ranks({50, 100})
                .with(busy_machine)
                .diagnosed()
                .verdict,
            Verdict::unequal_ranks);
}

TEST(DiagnosisTest, AGainIsNeverBelowZeroNorWithoutLimit) {
  for (const Golden& row : table()) {
    for (const double wait : {0.0, 1.0, 30.0, 1000.0}) {
      for (const double others : {0.0, 0.5, 2.0}) {
        FactsOf facts = row.facts;
        facts.waits(wait).with([&](DiagnosisFacts& f) { f.resources.other_cpus = others; });
        const Diagnosis found = facts.diagnosed();
        EXPECT_GE(found.gain_percent, 0) << row.name;
        EXPECT_TRUE(std::isfinite(found.gain_percent)) << row.name;
        EXPECT_EQ(found.gain_percent > 0, found.verdict != Verdict::nothing) << row.name;
      }
    }
  }
}

/// The more a run waits for its workers, the more there is to gain by feeding it better.
TEST(DiagnosisTest, TheGainGrowsWithTheTimeThatIsWaitedForData) {
  double before = 0;
  for (double decode = 45; decode < 1000; decode *= 1.2) {
    const double wait = std::max(0.0, decode + 20 - 40);  // one worker against a network of 40 ms
    const Diagnosis found =
        FactsOf().network(40).workers(1).reads(0).decodes(decode).resizes(20).waits(wait).diagnosed();
    EXPECT_GE(found.gain_percent, before - 1e-6) << decode;
    before = found.gain_percent;
  }
  EXPECT_GT(before, 50);
}

TEST(DiagnosisTest, ARunThatDoesNotWaitGetsNoAdviceToFeedItBetter) {
  for (const double decode : {1.0, 20.0, 70.0}) {
    const Diagnosis found = FactsOf().network(100).decodes(decode).resizes(1).waits(2).diagnosed();
    EXPECT_EQ(found.verdict, Verdict::nothing) << diagnosis_text(found);
  }
}

TEST(DiagnosisTest, PixelsInMemoryAreStillResizedAndTakeLongerThanRowsJustDecoded) {
  FactsOf facts = FactsOf().network(5).waits(95).decodes(160).resizes(20);
  const Diagnosis found = facts.with([](DiagnosisFacts& f) { f.pixel_bytes = 2e9; }).diagnosed();
  ASSERT_EQ(found.value, "ram");
  // 40 of the workers' 182 ms of CPU time are left, beside 5 of the network, on two CPUs.
  EXPECT_NEAR(found.gain_percent, 100 * ((182.0 + 5) / (40 + 5) - 1), 5);
}

TEST(DiagnosisTest, WhereOnlyTheCpuIsInTheWayItIsReportedWithWhatWasTried) {
  FactsOf facts = FactsOf().network(300).decodes(30).resizes(10);
  const Diagnosis found = facts.with([](DiagnosisFacts& f) { f.cpus_seconds = 0.4; }).diagnosed();
  EXPECT_EQ(found.evidence.at(2).rfind("2 threads compute a batch in 400ms, 1 in", 0), 0u);
  EXPECT_EQ(found.evidence.at(3).rfind("the CPU is the limit: a smaller network", 0), 0u);
  EXPECT_EQ(facts.with([](DiagnosisFacts& f) { f.on_cpu = false; }).diagnosed().evidence.size(), 2u);
}

TEST(DiagnosisTest, MoreWorkersAreNotPromisedMoreCpusThanThereAre) {
  const Diagnosis found = FactsOf().network(100).workers(1).decodes(180).resizes(20).waits(100).diagnosed();
  // 200 ms of workers and 100 of the network on two CPUs: 150 ms at best, of 200.
  EXPECT_EQ(found.verdict, Verdict::workers);
  EXPECT_LE(found.gain_percent, 34);
}

TEST(DiagnosisTest, TheTextHasVerdictEvidenceAdviceAndGain) {
  const Diagnosis found = {Verdict::workers,  {"waits for data 47%", "1 workers, busy all the time"},
                           "--num-workers",   "2",
                           "--num-workers 2", 54.4};
  EXPECT_EQ(diagnosis_text(found),
            "input-bound: too few workers (waits for data 47%, 1 workers, busy all the time): --num-workers "
            "2; predicted "
            "54% more images/s");
  EXPECT_EQ(diagnosis_json(found)["verdict"], "input-bound: too few workers");
  EXPECT_EQ(diagnosis_json(found)["gain_percent"], 54.4);
}

/// The evidence for a run of 64 images in about 64 ms, with 1 GFLOP in training each.
std::string evidence_at(double peak, const std::function<void(DiagnosisFacts&)>& change) {
  const Diagnosis found = FactsOf()
                              .network(60)
                              .decodes(10)
                              .resizes(2)
                              .with([&](DiagnosisFacts& f) {
                                f.compute.forward_flop = 0.3e9;
                                f.compute.training_flop = 1e9;
                                f.compute.peak_flop_per_second = peak;
                                change(f);
                              })
                              .diagnosed();
  EXPECT_EQ(found.verdict, Verdict::nothing);
  return found.evidence.back();
}

TEST(DiagnosisTest, OnlyAShareOfThePeakThatIsLowHasAReason) {
  const auto as_is = [](DiagnosisFacts&) {};
  EXPECT_NE(evidence_at(2e12, as_is).rfind("far from the peak", 0), 0u) << "half of the peak needs no reason";
  EXPECT_NE(evidence_at(1e13, as_is).find("far from the peak: normalizations, activations"), std::string::npos);
  EXPECT_NE(evidence_at(1e13, [](DiagnosisFacts& f) { f.compute.grouped_share = 0.1; }).find("depthwise"),
            std::string::npos);
  EXPECT_NE(evidence_at(1e13, [](DiagnosisFacts& f) { f.overhead_seconds = 11 * kMs; }).find("starting operations"),
            std::string::npos);
  EXPECT_NE(evidence_at(0, as_is).rfind("far from the peak", 0), 0u) << "no peak, no share";
}

}  // namespace
}  // namespace stoker::observe
