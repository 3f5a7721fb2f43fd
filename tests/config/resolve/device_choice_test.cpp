// SPDX-License-Identifier: Apache-2.0
// The device of a process: alone, or as one of several that share a machine, whose GPUs are made up here.
#include <gtest/gtest.h>

#include "tests/config/resolved_words.h"

namespace stoker::config {
namespace {

using fixtures::facts_of;
using fixtures::failure_of;
using fixtures::reason_of;
using Words = std::vector<std::string>;

/// A machine as process `local_rank` of `local_ranks` sees it; 0 of them: as the command that will start them does.
core::MachineFacts machine_of(int gpus, int local_rank = 0, int local_ranks = 0) {
  core::MachineFacts machine;
  machine.cpus = 8;
  for (int i = 0; i < gpus; ++i) machine.accelerators.push_back({"Card " + std::to_string(i), 80'000'000'000, true});
  machine.local_rank = local_rank;
  machine.local_ranks = local_ranks;
  return machine;
}

Resolution resolved(Words words, const core::MachineFacts& machine) {
  words.insert(words.begin(), {"--data-dir", "/data/flowers/", "--replicas", "8"});
  return fixtures::resolved(words, facts_of(machine));
}

std::string device_of(const Words& words, const core::MachineFacts& machine) {
  return resolved(words, machine).options.device.device;
}

/// The devices of all processes of a machine.
Words devices_of(const Words& words, int gpus, int processes) {
  Words devices;
  for (int rank = 0; rank < processes; ++rank) devices.push_back(device_of(words, machine_of(gpus, rank, processes)));
  return devices;
}

TEST(DeviceChoiceTest, EachProcessOfAMachineHasAGpuOfItsOwn) {
  EXPECT_EQ(devices_of({"--devices", "4"}, 4, 4), (Words{"cuda:0", "cuda:1", "cuda:2", "cuda:3"}));
  EXPECT_EQ(devices_of({"--devices", "2"}, 4, 2), (Words{"cuda:0", "cuda:1"}));
  EXPECT_EQ(devices_of({"--gpus", "2"}, 4, 2), (Words{"cuda:0", "cuda:1"}));
  EXPECT_EQ(devices_of({}, 2, 2), (Words{"cuda:0", "cuda:1"})) << "started by torchrun, mpirun or srun";
  EXPECT_EQ(devices_of({"--device", "cuda"}, 2, 2), (Words{"cuda:0", "cuda:1"}));
  EXPECT_EQ(reason_of(resolved({"--devices", "2"}, machine_of(2, 1, 2)), "device"), "of process 1 of 2, Card 1");
}

TEST(DeviceChoiceTest, AListNamesTheGpuOfEachProcess) {
  EXPECT_EQ(devices_of({"--devices", "0,2"}, 4, 2), (Words{"cuda:0", "cuda:2"}));
  EXPECT_EQ(devices_of({"--devices", "3,1,0,2"}, 4, 4), (Words{"cuda:3", "cuda:1", "cuda:0", "cuda:2"}));
  EXPECT_EQ(device_of({"--devices", "2,"}, machine_of(4)), "cuda:2") << "a list of one";
  EXPECT_EQ(device_of({"--devices", "2"}, machine_of(4, 1, 2)), "cuda:1") << "a number of processes";
}

TEST(DeviceChoiceTest, TheOptionsOfRank0LeaveEachProcessItsDevice) {
  EXPECT_EQ(devices_of({"--devices", "2", "--device", "cuda:0"}, 2, 2), (Words{"cuda:0", "cuda:1"}));
  EXPECT_EQ(devices_of({"--devices", "3,1", "--device", "cuda:3"}, 4, 2), (Words{"cuda:3", "cuda:1"}));
}

TEST(DeviceChoiceTest, AStarterMayNameTheDeviceOfEachProcessOrLetItSeeNoOther) {
  for (int rank = 0; rank < 2; ++rank) {
    const std::string own = "cuda:" + std::to_string(rank);
    EXPECT_EQ(device_of({"--device", own}, machine_of(2, rank, 2)), own);
  }
  EXPECT_EQ(devices_of({}, 1, 4), Words(4, "cuda:0"));
}

TEST(DeviceChoiceTest, ProcessesOfACpuShareIt) {
  EXPECT_EQ(devices_of({"--devices", "2"}, 0, 2), Words(2, "cpu"));
  EXPECT_EQ(devices_of({"--devices", "4", "--device", "cpu"}, 2, 4), Words(4, "cpu")) << "also beside GPUs";
}

TEST(DeviceChoiceTest, AListOnACpuIsRefusedAndTheHintExplainsWhatANumberIs) {
  const auto none = failure_of([] { resolved({"--devices", "0,2"}, machine_of(0)); });
  EXPECT_EQ(core::exit_code(none.kind), 78);
  EXPECT_EQ(none.message, "devices 0,2 are numbers of GPUs, but no CUDA device was found");
  EXPECT_EQ(none.hint, "on a CPU --devices is a number of processes: --devices 2 starts as many as the list names");
  const auto cpu = failure_of([] { resolved({"--devices", "0,2", "--device", "cpu"}, machine_of(4)); });
  EXPECT_EQ(core::exit_code(cpu.kind), 78);
  EXPECT_EQ(cpu.message, "devices 0,2 are numbers of GPUs, but device is cpu");
}

TEST(DeviceChoiceTest, MoreProcessesThanGpusAreRefusedBeforeAndAfterTheyAreStarted) {
  for (const core::MachineFacts& machine : {machine_of(2), machine_of(2, 0, 4), machine_of(2, 3, 4)}) {
    const auto failure = failure_of([&] { resolved({"--devices", "4"}, machine); });
    EXPECT_EQ(core::exit_code(failure.kind), 69);
    EXPECT_EQ(failure.message, "4 processes were requested, each with a GPU of its own, but there are 2 CUDA devices");
    EXPECT_EQ(failure.hint, "--devices 2, or --device cpu: processes that share the CPUs");
  }
  const auto one = failure_of([] { resolved({"--devices", "2"}, machine_of(1)); });
  EXPECT_EQ(one.message, "2 processes were requested, each with a GPU of its own, but there is 1 CUDA device");
}

TEST(DeviceChoiceTest, AGpuThatIsNotThereIsNamed) {
  const auto beyond = failure_of([] { resolved({"--devices", "0,5"}, machine_of(2)); });
  EXPECT_EQ(core::exit_code(beyond.kind), 69);
  EXPECT_EQ(beyond.message, "device cuda:5 was requested by devices 0,5, but there are 2 CUDA devices");
}

TEST(DeviceChoiceTest, OneDeviceForSeveralProcessesIsRefused) {
  const auto one = failure_of([] { resolved({"--devices", "2", "--device", "cuda:1"}, machine_of(4)); });
  EXPECT_EQ(core::exit_code(one.kind), 78);
  EXPECT_EQ(one.message, "device cuda:1 is one device, but there are 2 processes on this machine");
  EXPECT_EQ(failure_of([] {
              resolved({"--devices", "2,3", "--device", "cuda:1"}, machine_of(4));
            }).kind,
            core::ErrorKind::config);
  EXPECT_EQ(failure_of([] {
              resolved({"--devices", "0,1"}, machine_of(4, 2, 3));
            }).message,
            "devices 0,1 names no GPU for process 2 of this machine");
}

TEST(DeviceChoiceTest, ListsAreReadAsTheyAreWritten) {
  for (const std::string text : {"4", "0,2", "2,"}) {
    const auto given = fixtures::parsed({"--devices", text});
    EXPECT_EQ(given->table.row_of(given->options.device.devices).render(), text);
  }
  for (const std::string text : {"0", "-1", "a,b", "0,,1", "1,1", "0,64", ",", "1 2"}) {
    EXPECT_EQ(failure_of([&] { fixtures::parsed({"--devices", text}); }).kind, core::ErrorKind::usage) << text;
  }
}

}  // namespace
}  // namespace stoker::config
