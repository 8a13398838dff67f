// Indications to a controller that a process or node of its job is lost.
//
// If another generation can follow, Membership handles them, and the job continues without the lost
// processes. Otherwise, in a job that is not elastic or before all ranks of generation 1 have joined,
// Supervisor handles them and determines the cause of the failure.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/control/control_message.h"

namespace sailor {

class LossSigns {
 public:
  virtual ~LossSigns() = default;

  // An adopted process on a node has ended; it is not necessarily a rank.
  virtual void process_ended(const std::string& node, int64_t pid, int wait_status) = 0;
  // A child of the controller has ended; it may be an agent's Slurm step.
  virtual void child_ended(int64_t pid, int wait_status) = 0;
  // A rank could not reach another rank: `failure.peer_lost`.
  virtual void unreachable(const std::string& peer, const Failure& failure) = 0;
  // The device of a rank failed, and its process ends: `failure.device_failed`.
  virtual void device_failed(const std::string& peer, const Failure& failure) = 0;
  // The peer has not answered for `silence_s`.
  virtual void peer_silent(const std::string& peer, double silence_s) = 0;
  // The control channel has dropped the peer because of an invalid message.
  virtual void peer_dropped(const std::string& peer, const std::string& reason) = 0;
  // The controller has no child left.
  virtual void no_children() = 0;
};

}  // namespace sailor
