// The signs by which a controller learns that somebody of its job is lost.
//
// Where another generation can follow, Membership takes them, and the job goes on without whom it lost. Where
// none can, in a job that is not elastic or before the ranks of generation 1 have all joined, Supervisor
// does, and finds out what the job fails of.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/control/control_message.h"

namespace sailor {

class LossSigns {
 public:
  virtual ~LossSigns() = default;

  // A process that was adopted on a node has ended; it may be no rank.
  virtual void process_ended(const std::string& node, int64_t pid, int wait_status) = 0;
  // A child of the controller has ended; it may be the Slurm step of an agent.
  virtual void child_ended(int64_t pid, int wait_status) = 0;
  // A rank could not reach another one: `failure.peer_lost`.
  virtual void unreachable(const std::string& peer, const Failure& failure) = 0;
  // Nothing has been heard of the peer for that long.
  virtual void peer_silent(const std::string& peer, double silence_s) = 0;
  // The control channel has dropped the peer, because of what it sent.
  virtual void peer_dropped(const std::string& peer, const std::string& reason) = 0;
  // The controller has no child any more.
  virtual void no_children() = 0;
};

}  // namespace sailor
