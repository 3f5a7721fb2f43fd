// SPDX-License-Identifier: Apache-2.0
#include "commands/check/check_report.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace stoker::train {
namespace {

/// Two idle CPUs with native bfloat16, OpenBLAS, a local disk.
CheckFacts good_machine() {
  CheckFacts facts;
  facts.version = "0";
  facts.libtorch = "LibTorch 1.13.0, CPU build";
  facts.device = "cpu";
  facts.machine.cpus = 2;
  facts.machine.cpus_reason = "2 by affinity, no cgroup limit";
  facts.machine.avx512 = facts.machine.native_bfloat16 = true;
  facts.driver.failure = "libnvidia-ml.so.1 cannot be loaded";
  facts.blas = engine::blas_of_path("/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3");
  facts.compute = {{"matmul", "float32", false, 100},      {"matmul", "bfloat16", false, 250},
                   {"matmul", "float16", false, 0},        {"convolution", "float32", false, 80},
                   {"convolution", "float32", true, 90},   {"convolution", "bfloat16", false, 100},
                   {"convolution", "bfloat16", true, 200}, {"convolution", "float16", false, 0},
                   {"convolution", "float16", true, 0}};
  facts.threads = {2, 4e-6, 20e-6, 1.9};
  facts.num_workers = 2;
  facts.data_dir = "/data";
  facts.storage = data::StorageSpeed{100, 64, 1 << 20, 0.5, true, 1e-4, 5e-4, 2e8, 3e9};
  return facts;
}

std::string reason_of(const CheckFacts& facts, const std::string& flag) {
  for (const Advice& advice : advice_from(facts)) {
    if (advice.flag == flag) return advice.reason;
  }
  return "";
}

TEST(CheckReportTest, AGoodMachineHasNoWarning) {
  EXPECT_TRUE(warnings_from(good_machine()).empty()) << warnings_from(good_machine()).front();
  EXPECT_EQ(reason_of(good_machine(), "--threads 2"), "1.9 times the speed of one thread");
  EXPECT_EQ(reason_of(good_machine(), "--num-workers 2"), "2 by affinity, no cgroup limit");
}

TEST(CheckReportTest, HasDriverProcessorsAndEachCardWithWhatCostsSpeed) {
  CheckFacts facts = good_machine();
  facts.driver = {"", "535.183.01", "12.2", "12.1", "8.9.2", {"NVIDIA A"}};
  facts.host.sockets = 2;
  observe::PlacedCard card;
  card.facts.name = "NVIDIA A";
  card.facts.compute_capability = "8.9";
  card.facts.persistence = false;
  facts.cards = {card};
  const std::string text = check_text(facts);
  for (const char* const line :
       {"\ndriver    NVIDIA 535.183.01 (CUDA 12.2), CUDA runtime 12.1, cuDNN 8.9.2\n", "\nhost      2 sockets\n",
        "\ncard      NVIDIA A\n          compute capability 8.9, persistence mode off\n",
        "\nwarning   NVIDIA A: persistence mode is off"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
  const core::Json json = check_json(facts);
  EXPECT_EQ(json.at("cudnn"), "8.9.2");
  EXPECT_EQ(json.at("cuda_runtime"), "12.1");
  EXPECT_EQ(json.at("driver_cuda"), "12.2");
  EXPECT_EQ(json.at("host").at("sockets"), 2);
  EXPECT_EQ(json.at("cards").at(0).at("compute_capability"), "8.9");
  EXPECT_TRUE(check_json(good_machine()).at("cards").empty());
}

TEST(CheckReportTest, WhatWasGivenIsNoAdvice) {
  CheckFacts facts = good_machine();
  facts.given = {"--threads 2", "--num-workers 2"};
  EXPECT_EQ(reason_of(facts, "--threads 2"), "");
  EXPECT_EQ(reason_of(facts, "--num-workers 2"), "");
}

TEST(CheckReportTest, WhatARunWouldChooseTakesThePlaceOfGeneralAdvice) {
  CheckFacts facts = good_machine();
  facts.chosen = {{"--amp off", "the network trains 0.5 times as fast in bfloat16 as in float32"}};
  const std::string text = check_text(facts);
  EXPECT_NE(text.find("chosen    --amp off: the network trains 0.5 times"), std::string::npos) << text;
  EXPECT_EQ(text.find("\ntry "), std::string::npos) << text;
  EXPECT_EQ(check_json(facts).at("advice").size(), 1u);
}

TEST(CheckReportTest, AdvisesWhatWasMeasuredToBeFaster) {
  CheckFacts facts = good_machine();
  EXPECT_EQ(reason_of(facts, "--amp bfloat16"), "convolutions run at 2.2 times the speed of float32");
  EXPECT_EQ(reason_of(facts, "--channels-last"),
            "bfloat16 convolutions: 200 GFLOP/s channels-last, 100 channels-first");
  facts.compute[5].gflops_per_second = facts.compute[6].gflops_per_second = 30;
  EXPECT_NE(reason_of(facts, "--no-amp"), "");
  facts.compute[3].gflops_per_second = 95;
  EXPECT_EQ(reason_of(facts, "--no-channels-last"),
            "float32 convolutions: 90 GFLOP/s channels-last, 95 channels-first");
}

TEST(CheckReportTest, EmulatedBfloat16IsNotAdvisedHoweverItWasMeasured) {
  CheckFacts facts = good_machine();
  facts.machine.native_bfloat16 = false;
  EXPECT_NE(reason_of(facts, "--no-amp"), "");
}

TEST(CheckReportTest, AGpuWithoutNativeBfloat16GetsFloat16AndABatchForItsMemory) {
  CheckFacts facts = good_machine();
  facts.device = "cuda:0";
  facts.machine.accelerators = {{"Tesla", 16'000'000'000, false}};
  facts.compute[7].gflops_per_second = 60;
  facts.compute[8].gflops_per_second = 400;
  EXPECT_NE(reason_of(facts, "--amp float16"), "");
  EXPECT_NE(reason_of(facts, "--batch-size 128"), "") << "0.8 x 16 GB / 100 MB";
}

TEST(CheckReportTest, AdviceIsAboutTheDeviceThatWasChosen) {
  CheckFacts facts = good_machine();
  facts.device = "cuda:1";
  facts.machine.accelerators = {{"Tesla", 16'000'000'000, false}, {"Ampere", 80'000'000'000, true}};
  EXPECT_NE(reason_of(facts, "--batch-size 640"), "") << "0.8 x 80 GB / 100 MB";
  EXPECT_EQ(reason_of(facts, "--amp float16"), "");
}

TEST(CheckReportTest, ThreadsThatWaitForACoreAreCalledOut) {
  CheckFacts slow_handover = good_machine(), no_gain = good_machine();
  slow_handover.threads.worst_handover_seconds = 8e-3;
  no_gain.threads.speedup = 0.9;
  for (const CheckFacts& facts : {slow_handover, no_gain}) {
    EXPECT_NE(reason_of(facts, "--threads 1"), "");
    ASSERT_EQ(warnings_from(facts).size(), 1u);
    EXPECT_NE(warnings_from(facts)[0].find("another process computes on these CPUs"), std::string::npos);
  }
}

TEST(CheckReportTest, TheReferenceBlasIsCalledOutWithItsCure) {
  CheckFacts facts = good_machine();
  facts.blas = engine::blas_of_path("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0");
  EXPECT_TRUE(facts.blas.reference);
  ASSERT_EQ(warnings_from(facts).size(), 1u);
  EXPECT_NE(warnings_from(facts)[0].find("apt install libopenblas0-openmp"), std::string::npos);
}

TEST(CheckReportTest, LibrariesAreRecognisedByTheirPaths) {
  EXPECT_EQ(engine::blas_of_path("/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3").name, "OpenBLAS");
  EXPECT_EQ(engine::blas_of_path("/opt/intel/libmkl_rt.so.2").name, "Intel MKL");
  EXPECT_EQ(engine::blas_of_path("/opt/libtorch/lib/libtorch_cpu.so").name, "inside LibTorch");
  EXPECT_FALSE(engine::blas_of_path("/usr/lib/x86_64-linux-gnu/blis-openmp/libblas.so.4").reference);
}

TEST(CheckReportTest, AGpuThatLibTorchCannotUseIsCalledOut) {
  CheckFacts facts = good_machine();
  facts.driver.failure = "";
  facts.driver.devices = {"NVIDIA H200"};
  ASSERT_EQ(warnings_from(facts).size(), 1u);
  EXPECT_NE(warnings_from(facts)[0].find("this LibTorch is a CPU build"), std::string::npos);
}

TEST(CheckReportTest, WhatIsNotKnownIsNotZero) {
  const std::string text = check_text(good_machine());
  EXPECT_NE(text.find("float16   GFLOP/s on cpu: matmul n/a, convolution n/a channels-first, n/a channels-last"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("driver    n/a (libnvidia-ml.so.1 cannot be loaded)"), std::string::npos) << text;
  const core::Json json = check_json(good_machine());
  EXPECT_TRUE(json.at("driver").is_null());
  EXPECT_TRUE(json.at("speed").at(8).at("gflops_per_second").is_null());
  CheckFacts without = good_machine();
  without.storage.reset();
  EXPECT_TRUE(check_json(without).at("storage").is_null());
}

TEST(CheckReportTest, ReadingsFromMemoryAreNotCalledStorage) {
  CheckFacts facts = good_machine();
  facts.storage->dropped = false;
  EXPECT_NE(check_text(facts).find("storage was not measured"), std::string::npos);
}

}  // namespace
}  // namespace stoker::train
