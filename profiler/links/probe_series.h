// The measurements between the ranks of a probe. Pure: every rank computes the same list from the same cards.
//
// Nodes with the same GPU type and zone are of one kind, represented by the first node with most ranks.
// Messages are measured within a node and between nodes of each pair of kinds, in both directions if the ends
// differ; first between single GPUs, then between all GPUs of the nodes concurrently, which share their
// network cards. Collectives run over all GPUs of a node, one GPU of every node, and all GPUs. Ranks with
// GPUs measure all of this over NCCL, and then messages over sockets, which carry what is in host memory;
// where no rank has one, everything is measured over sockets.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/profile/network_file.h"

namespace sailor {

// A rank of the probe.
struct ProbeRank {
  std::string node;
  std::string gpu_type;
  std::string zone;  // empty = any
  bool gpu = false;  // it has one, and measures over NCCL
};

// One quantity that is measured at several sizes.
struct ProbeSeries {
  // Participating ranks; for messages the senders, then their receivers in the same order.
  std::vector<int> members;
  Transport transport = Transport::sockets;
  std::string operation;  // of a collective; empty = messages
  // For messages: their link.
  LinkEnd from{.gpu_type = "", .zone = "", .gpus = 0}, to{.gpu_type = "", .zone = "", .gpus = 0};
  NetworkProfile::Scope scope = NetworkProfile::Scope::any;
  // For collectives:
  std::vector<std::string> kinds;  // NetworkFile::Collective::members
  int nodes = 1;

  bool is_collective() const { return !operation.empty(); }
  int pairs() const { return is_collective() ? 1 : static_cast<int>(members.size() / 2); }
};

// The most informative first, so that even a short run gives a usable profile. Collectives last of a
// transport, if requested. `only`: nothing over the other transport.
std::vector<ProbeSeries> probe_series(const std::vector<ProbeRank>& ranks, bool collectives = true,
                                      std::optional<Transport> only = {});

// "X in z to Y in z, between nodes, 4 pairs at once, over NCCL", "all_reduce of 8 x X on 2 nodes, over NCCL".
std::string describe(const ProbeSeries& series);

}  // namespace sailor
