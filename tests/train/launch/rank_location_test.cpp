// SPDX-License-Identifier: Apache-2.0
#include "train/failure/rank_location.h"

#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace stoker::train {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<RankLocation> place_in(const Variables& variables, int devices = 1,
                                     const std::string& listen = "10.0.0.1") {
  return rank_location(
      [&](const std::string& name) {
        const auto found = variables.find(name);
        return found == variables.end() ? "" : found->second;
      },
      {devices, listen});
}

std::string refusal_of(const Variables& variables, int devices = 1, const std::string& listen = "10.0.0.1") {
  try {
    place_in(variables, devices, listen);
  } catch (const core::Error& error) {
    EXPECT_EQ(core::exit_code(error.kind()), 78);
    return error.what();
  }
  return "";
}

const Variables kTorchrun = {{"RANK", "3"},        {"WORLD_SIZE", "4"},  {"LOCAL_RANK", "1"},
                             {"MASTER_ADDR", "a"}, {"MASTER_PORT", "7"}, {"LOCAL_WORLD_SIZE", "2"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

TEST(RankLocationTest, AProcessThatNobodyStartedAsARankIsAlone) {
  EXPECT_FALSE(place_in({}));
  EXPECT_FALSE(place_in({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}))
      << "the script of a batch job is one process";
  EXPECT_FALSE(place_in({{"RANK", "0"}, {"WORLD_SIZE", "1"}}));
}

TEST(RankLocationTest, TorchrunGivesRankAndMeetingPoint) {
  const std::optional<RankLocation> place = place_in(kTorchrun);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 3);
  EXPECT_EQ(place->size, 4);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->local_size, 2);
  EXPECT_EQ(place->host, "a");
  EXPECT_EQ(place->port, 7);
  EXPECT_EQ(place->listen, "10.0.0.1");
  EXPECT_EQ(place->attempt, 0);
  EXPECT_FALSE(place->has_store);
  EXPECT_TRUE(place_in(with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True"))->has_store);
  EXPECT_EQ(place_in(with(kTorchrun, "TORCHELASTIC_RESTART_COUNT", "2"))->attempt, 2);
}

TEST(RankLocationTest, RanksOfOneJobHaveItsNameAndOthersAnother) {
  const auto job_of = [](const Variables& variables) { return place_in(variables)->job; };
  const std::string job = job_of(kTorchrun);
  EXPECT_FALSE(job.empty());
  EXPECT_EQ(job_of(with(with(kTorchrun, "RANK", "0"), "LOCAL_RANK", "0")), job);
  for (const char* const name : {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}) {
    EXPECT_NE(job_of(with(kTorchrun, name, "8")), job) << name;
  }
  EXPECT_EQ(job_of(with(kTorchrun, "SLURM_JOB_ID", "8")), job) << "torchrun on two machines may be in two of them";
  const Variables near = with(kTorchrun, "LOCAL_WORLD_SIZE", "4");
  EXPECT_NE(job_of(with(near, "SLURM_JOB_ID", "8")), job_of(near));
}

TEST(RankLocationTest, SeveralMachinesNeedAnAddressToListenAt) {
  EXPECT_EQ(refusal_of(kTorchrun, 1, /*listen=*/""),
            "2 of 4 ranks are on other machines, and the address at which rank 0 waits for them is not set");
  Variables without = kTorchrun;
  without.erase("MASTER_ADDR");
  EXPECT_EQ(place_in(without)->host, "10.0.0.1") << "it is where the others find it, too";
  EXPECT_EQ(refusal_of(without, 1, /*listen=*/"0.0.0.0"), "MASTER_ADDR is not set; the other ranks cannot find rank 0");
}

TEST(RankLocationTest, WithoutFactsOfMachinesEachHasOneRank) {
  const Variables far = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "job-0.job"}, {"MASTER_PORT", "7"}};
  EXPECT_EQ(place_in(far)->local_size, 1);
  EXPECT_EQ(place_in(far)->local_rank, 0);
  EXPECT_EQ(place_in(with(far, "MASTER_ADDR", "localhost"))->local_size, 2);
  EXPECT_EQ(refusal_of(with(far, "LOCAL_RANK", "1")), "LOCAL_RANK is set, but LOCAL_WORLD_SIZE is not");
}

TEST(RankLocationTest, MpirunOnOneMachineNeedsNoMeetingPoint) {
  const auto place_of = [](const std::string& rank) {
    return place_in({{"OMPI_COMM_WORLD_RANK", rank},
                     {"OMPI_COMM_WORLD_SIZE", "2"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", rank},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                     {"PMIX_NAMESPACE", "prterun-17"}});
  };
  ASSERT_TRUE(place_of("1"));
  EXPECT_EQ(place_of("1")->rank, 1);
  EXPECT_EQ(place_of("0")->job, place_of("1")->job);
}

TEST(RankLocationTest, SrunGivesTheFactsOfItsStep) {
  const std::optional<RankLocation> place = place_in({{"SLURM_PROCID", "1"},
                                                      {"SLURM_STEP_NUM_TASKS", "2"},
                                                      {"SLURM_LOCALID", "1"},
                                                      {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                                      {"SLURM_JOB_ID", "12"}});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->size, 2);
  EXPECT_EQ(place->starter, "srun");
}

TEST(RankLocationTest, SrunNamesTheMachineOfRank0First) {
  for (const auto& [nodes, first] : std::map<std::string, std::string>{
           {"a,b", "a"}, {"node[07-09,12],x", "node07"}, {"n[3,5]", "n3"}, {"r[1-2]-c", "r1-c"}}) {
    const std::optional<RankLocation> place = place_in({{"SLURM_PROCID", "1"},
                                                        {"SLURM_STEP_NUM_TASKS", "2"},
                                                        {"SLURM_LOCALID", "0"},
                                                        {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                                        {"SLURM_STEP_NODELIST", nodes},
                                                        {"SLURM_JOB_ID", "12"}},
                                                       /*devices=*/1, /*listen=*/"0.0.0.0");
    EXPECT_EQ(place->host, first) << nodes;
  }
}

TEST(RankLocationTest, WhatContradictsIsRefused) {
  EXPECT_EQ(refusal_of({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), "MASTER_PORT is not set; the ranks cannot meet");
  EXPECT_EQ(refusal_of({{"RANK", "0"}}), "RANK is set, but WORLD_SIZE is not");
  EXPECT_EQ(refusal_of(with(kTorchrun, "RANK", "4")), "RANK=4, but WORLD_SIZE=4");
  EXPECT_EQ(refusal_of(with(kTorchrun, "RANK", "x")), "RANK=x is not a number from 0 to 1048576");
  EXPECT_EQ(refusal_of(with(kTorchrun, "MASTER_PORT", "70000")), "MASTER_PORT=70000 is not a number from 0 to 65535");
  EXPECT_EQ(refusal_of(kTorchrun, /*devices=*/3),
            "--devices 3, but torchrun started 4 processes, 2 of them on this machine");
  EXPECT_EQ(refusal_of(with(kTorchrun, "LOCAL_RANK", "2")), "LOCAL_RANK=2, but 2 processes are on this machine");
  Variables both = kTorchrun;
  both["OMPI_COMM_WORLD_RANK"] = "1";
  both["OMPI_COMM_WORLD_SIZE"] = "4";
  EXPECT_EQ(refusal_of(both), "torchrun sets rank 3 of 4, mpirun sets rank 1 of 4");
}

TEST(RankLocationTest, WhatTheCommandGivesToItsRanksIsReadBack) {
  RankLocation place;
  place.rank = place.local_rank = 1;
  place.size = place.local_size = 2;
  place.job = "train-4711";
  Variables variables = with(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE", "True");  // of somebody further up
  for (const std::string& variable : variables_of(place)) {
    variables[variable.substr(0, variable.find('='))] = variable.substr(variable.find('=') + 1);
  }
  const std::optional<RankLocation> read = place_in(variables, /*devices=*/2);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rank, 1);
  EXPECT_EQ(read->job, "train-4711");
  EXPECT_FALSE(read->has_store);
  EXPECT_EQ(read->starter, "train");
}

}  // namespace
}  // namespace stoker::train
