// A hook for an emulated network: makes messages between ranks take the time that another link would need.
// Planes of real devices have none.
//
// A message passes through the resources that its sender shares with others (a port, a network card) in short
// turns, each of which is reserved when the previous one is over. So concurrent messages share a resource
// evenly, like flows on a real card, and a short message does not wait for a long one. It leaves when its
// last turn and the link's latency are over.
#pragma once

#include <chrono>
#include <cstddef>

namespace sailor {

class LinkPacer {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~LinkPacer() = default;

  // A message between two ranks of the job. Value type, kept by the sender.
  struct Passage {
    int from = 0, to = 0;
    std::size_t bytes = 0;
    Clock::time_point at{};  // when it was posted, then the end of its newest turn
    int turns = 0;           // taken so far
    bool through = true;     // has had all turns
    // If through: when it leaves, at the earliest. The epoch = at once.
    Clock::time_point leaves{};
  };

  // Gives a message that is not through its next turn, which begins at passage.at or when the resources are
  // free, and updates `passage`. Call it when passage.at is reached; a late call does not delay a message on
  // free resources. Messages of one pair take their turns, and so leave, in the order of posting: a message
  // gets no turn before the previous one is through. Called by one thread at a time.
  virtual void take_turn(Passage& passage) = 0;
};

}  // namespace sailor
