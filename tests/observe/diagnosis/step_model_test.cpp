// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "observe/diagnosis/bottleneck_analysis.h"

namespace stoker::observe {
namespace {

TEST(StepModelTest, TheSlowestOfTrainingThreadWorkersAndCpusIsTheLimit) {
  StepModel model;
  model.training = 3;
  model.network_cpu = 3;
  model.worker_cpu = 4;
  model.worker_blocked = 2;
  model.workers = 1;
  model.cpus = 2;
  EXPECT_EQ(model.limit(), 6);  // one worker: 4 of work, 2 of waiting
  model.workers = 4;
  EXPECT_EQ(model.limit(), 3.5);  // 7 of work on two CPUs
  model.cpus = 8;
  EXPECT_EQ(model.limit(), 3);  // the training thread
  model.workers = 0;
  EXPECT_EQ(model.limit(), 9);  // does it all
}

TEST(StepModelTest, OtherProcessesTakeCpusAway) {
  StepModel model;
  model.network_cpu = 2;
  model.worker_cpu = 2;
  model.workers = 2;
  model.training = 2;
  model.cpus = 2;
  model.taken_cpus = 1;
  EXPECT_EQ(model.limit(), 4);
}

}  // namespace
}  // namespace stoker::observe
