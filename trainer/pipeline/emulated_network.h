// The network between emulated devices: a message arrives after the time of the link's curve in the network
// profile.
//
// Every rank has a port for messages within its node and one for those to other nodes, and every node has one
// interface that its ranks share. A message occupies its sender's port for the time of its bytes according to
// the curve, and the interface for the time at the node's rate (none, if the link has no such rate), in turns
// of about two milliseconds (link_pacer.h), so that concurrent messages share them evenly. It arrives the
// link's latency after its last turn. Stages without a node count as separate nodes. Messages within a TP
// group, and those of attention within a CP group, are not delayed: the first are in the layer profile, the
// others pass while the device is emulated.
//
// Ranks are processes on one machine here; those of one node share the state of its interface through a small
// file. One object per rank; one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/profile/network_profile.h"
#include "planner/spec/catalog.h"
#include "trainer/comm/link_pacer.h"

namespace sailor {

class EmulatedNetwork : public LinkPacer {
 public:
  // `directory` is shared by the ranks of a node and used by no other run. Links between two GPU types that
  // are not emulated, and links that are not in the profile, run at full speed. Throws std::runtime_error
  // when the shared file cannot be created.
  EmulatedNetwork(const Plan& plan, int rank, const Catalog& catalog, const NetworkProfile& network,
                  const std::string& directory);
  ~EmulatedNetwork() override;
  EmulatedNetwork(const EmulatedNetwork&) = delete;
  EmulatedNetwork& operator=(const EmulatedNetwork&) = delete;

  void take_turn(Passage& passage) override;

 private:
  struct Link {
    bool paced = false;
    bool same_node = false;
    LinkCurve curve;
  };
  using FreeAt = std::atomic<int64_t>;  // nanoseconds on the steady clock

  int rank_;
  std::vector<Link> to_;  // by rank
  FreeAt near_port_free_at_{0}, far_port_free_at_{0};
  FreeAt* interface_free_at_ = nullptr;  // in the shared file
};

}  // namespace sailor
