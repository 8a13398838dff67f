// Topology and binding on recorded machines (machines/*.xml).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "planner/spec/error.h"
#include "planner/spec/text_file.h"
#include "trainer/topology/gpu_environment.h"
#include "trainer/topology/machine_topology.h"
#include "trainer/topology/nic_environment.h"
#include "trainer/topology/rank_binding.h"
#include "trainer/topology/topology_report.h"

namespace sailor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

MachineTopology machine(const std::string& name) {
  return load_topology(std::string(SAILOR_SOURCE_DIR) + "/tests/unit/trainer/topology/machines/" + name +
                       ".xml");
}

TEST(Topology, EightGpusWithNvlinkShareFourCards) {
  const MachineTopology box = machine("eight-gpus-nvlink");
  EXPECT_EQ(box.sockets, 2);
  EXPECT_EQ(box.cores, 32);
  EXPECT_EQ(box.processors, 64);
  ASSERT_EQ(box.numa_nodes.size(), 8u);
  EXPECT_EQ(box.numa_nodes[3].cpus, "24-31");
  EXPECT_EQ(box.numa_nodes[3].memory_bytes, int64_t{120} << 30);
  ASSERT_EQ(box.gpus.size(), 8u) << "the management display is no GPU";
  ASSERT_EQ(box.nics.size(), 4u);
  EXPECT_EQ(box.gpus[0].pci, "0000:03:00.0");
  EXPECT_EQ(box.gpus[0].model, "GPU model A");
  EXPECT_THAT(box.gpus[0].numa_nodes, ElementsAre(3));
  EXPECT_NEAR(box.gpus[0].link_gb_per_s, 31.5, 0.1);
  EXPECT_THAT(box.nics[1].names, ElementsAre("mlx5_1", "ib1"));
  for (size_t a = 0; a < 8; ++a)
    for (size_t b = 0; b < 8; ++b)
      EXPECT_EQ(box.gpu_to_gpu[a][b], a == b ? Proximity::same_device : Proximity::nvlink);
  EXPECT_EQ(box.gpu_to_nic[2][1], Proximity::same_switch);
  EXPECT_EQ(box.gpu_to_nic[2][0], Proximity::same_socket);
  EXPECT_EQ(box.gpu_to_nic[2][3], Proximity::across_sockets);
  // Two GPUs of a NUMA node have half its cores each, and the closest card.
  std::vector<std::string> cpus;
  std::vector<int> nics;
  for (const auto& binding : box.bindings) {
    cpus.push_back(binding.cpus);
    nics.push_back(binding.nic);
    EXPECT_EQ(binding.numa_nodes, box.gpus[static_cast<size_t>(binding.gpu)].numa_nodes);
  }
  EXPECT_THAT(cpus, ElementsAre("24-27", "28-31", "8-11", "12-15", "56-59", "60-63", "40-43", "44-47"));
  EXPECT_THAT(nics, ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
}

TEST(Topology, FourGpusOnPciTakeTurnsAtTheCardsOfOneSocket) {
  const MachineTopology box = machine("four-gpus-pci");
  ASSERT_EQ(box.gpus.size(), 4u) << "GPUs with a video output count";
  ASSERT_EQ(box.nics.size(), 2u);
  EXPECT_EQ(box.gpu_to_gpu[0][1], Proximity::same_numa);
  EXPECT_EQ(box.gpu_to_gpu[1][2], Proximity::across_sockets);
  std::vector<int> nics;
  for (const auto& binding : box.bindings) nics.push_back(binding.nic);
  EXPECT_THAT(nics, ElementsAre(0, 1, 0, 1));
  EXPECT_EQ(box.bindings[3].cpus, "12-15");
}

TEST(Topology, ANodeWithoutGpusHasNothingToBind) {
  const MachineTopology box = machine("no-gpus");
  EXPECT_TRUE(box.gpus.empty());
  EXPECT_TRUE(box.bindings.empty());
  ASSERT_EQ(box.nics.size(), 1u);
  EXPECT_EQ(box.nics[0].names.front(), "eth0");
  EXPECT_THAT(topology_table(box), HasSubstr("no GPUs to bind ranks to"));
}

TEST(Topology, WithoutNvlinksInTheRecordPciDecides) {
  std::string xml = read_text_file(std::string(SAILOR_SOURCE_DIR) +
                                   "/tests/unit/trainer/topology/machines/eight-gpus-nvlink.xml");
  const size_t begin = xml.find("<distances2"), end = xml.find("</distances2>") + 13;
  xml.erase(begin, end - begin);
  const MachineTopology box = parse_topology(xml, "box.xml");
  EXPECT_EQ(box.gpu_to_gpu[0][1], Proximity::same_switch);
  EXPECT_EQ(box.gpu_to_gpu[1][2], Proximity::same_socket);
  EXPECT_EQ(box.gpu_to_gpu[3][4], Proximity::across_sockets);
}

TEST(Topology, WhatIsNoRecordIsRefused) {
  for (const char* text :
       {"", "<topology>", "{}", "<?xml version=\"1.0\"?><topology version=\"2.0\"></topology>"}) {
    try {
      parse_topology(text, "box.xml");
      ADD_FAILURE() << text;
    } catch (const InputError& e) {
      EXPECT_STREQ(e.what(), "box.xml: is not a topology written by `lstopo FILE.xml`");
    }
  }
}

TEST(Topology, ThisMachineIsReadToo) {
  const MachineTopology here = discover_topology();
  EXPECT_GE(here.processors, 1);
  EXPECT_GE(here.numa_nodes.size(), 1u);
  EXPECT_EQ(here.bindings.size(), here.gpus.size());
}

TEST(NicEnvironment, AllInterfacesOfTheJobsNetwork) {
  EXPECT_THAT(nic_environment({"ens1f1", "ens1f0"}),
              ElementsAre(testing::Pair("NCCL_SOCKET_IFNAME", "=ens1f0,ens1f1")));
  EXPECT_TRUE(nic_environment({}).empty());
}

TEST(NicEnvironment, TheCardsWithRdmaAreNcclsChoice) {
  unsetenv("NCCL_IB_HCA");
  unsetenv("NCCL_SOCKET_IFNAME");
  set_nic_environment("127.0.0.1");
  EXPECT_EQ(getenv("NCCL_IB_HCA"), nullptr);
  EXPECT_EQ(getenv("NCCL_SOCKET_IFNAME"), nullptr) << "one machine needs no network";
}

TEST(GpuEnvironment, IsSetUnlessTheUserHasSetIt) {
  unsetenv("CUDA_MODULE_LOADING");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  set_gpu_environment();
  EXPECT_STREQ(getenv("CUDA_MODULE_LOADING"), "EAGER");
  EXPECT_STREQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  setenv("CUDA_MODULE_LOADING", "LAZY", 1);
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  set_gpu_environment();
  EXPECT_STREQ(getenv("CUDA_MODULE_LOADING"), "LAZY");
  EXPECT_STREQ(getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "1");
  unsetenv("CUDA_MODULE_LOADING");
  unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}

TEST(GpuEnvironment, RanksThatShareAGpuAreHostsOfTheirOwnToNccl) {
  setenv("NCCL_HOSTID", "inherited", 1);
  setenv("SAILOR_DEVICE", "gpu", 1);
  set_gpu_environment();
  EXPECT_FALSE(shares_gpus());
  EXPECT_STREQ(getenv("NCCL_HOSTID"), "inherited");
  setenv("SAILOR_DEVICE", "shared", 1);
  set_gpu_environment();
  EXPECT_TRUE(shares_gpus());
  EXPECT_THAT(getenv("NCCL_HOSTID"), testing::EndsWith(std::to_string(getpid())));
  for (const char* name :
       {"NCCL_HOSTID", "SAILOR_DEVICE", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS"})
    unsetenv(name);
}

TEST(GpuEnvironment, DeterministicLibrariesUnlessTheUserHasChosen) {
  for (const char* name : {"CUBLAS_WORKSPACE_CONFIG", "NCCL_NVLS_ENABLE"}) unsetenv(name);
  setenv("NCCL_NVLS_ENABLE", "1", 1);
  set_deterministic_environment();
  EXPECT_STREQ(getenv("CUBLAS_WORKSPACE_CONFIG"), ":4096:8");
  EXPECT_STREQ(getenv("NCCL_NVLS_ENABLE"), "1");
  for (const char* name : {"CUBLAS_WORKSPACE_CONFIG", "NCCL_NVLS_ENABLE"}) unsetenv(name);
}

TEST(RankBinding, CoresAreSharedOutWholeAndNobodyGoesWithout) {
  for (size_t gpus = 1; gpus <= 9; ++gpus) {
    for (size_t cores = 1; cores <= 12; ++cores) {
      MachineTopology machine;
      machine.gpus.resize(gpus);
      machine.gpu_to_nic.resize(gpus);
      std::vector<CoreSet> sets;
      std::vector<int> all;
      for (int c = 0; c < static_cast<int>(cores); ++c) {
        sets.push_back({2 * c, 2 * c + 1});
        all.insert(all.end(), sets.back().begin(), sets.back().end());
      }
      std::multiset<std::string> used;
      for (const auto& b : bind_ranks(machine, sets, std::vector<std::vector<int>>(gpus, all))) {
        EXPECT_FALSE(b.cpus.empty());
        EXPECT_EQ(b.nic, -1);
        used.insert(b.cpus);
      }
      for (const std::string& cpus : used) EXPECT_EQ(used.count(cpus), cores < gpus ? gpus : 1) << cpus;
    }
  }
}

TEST(RankBinding, CpuListsAreShort) {
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_EQ(cpu_list({5}), "5");
  EXPECT_EQ(cpu_list({7, 0, 1, 2, 9, 8}), "0-2,7-9");
}

}  // namespace
}  // namespace sailor
