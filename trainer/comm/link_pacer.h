// A hook by which an emulated network makes messages between ranks take the time that another link would
// need. Planes of real devices have none.
//
// A message passes through what its sender shares with others (a port, a network card) in short turns, each
// of which is reserved when the one before it is over. So messages that are under way at the same time share
// it evenly, as flows do on a real card, and a short one does not wait until a long one is through. It leaves
// when its last turn and the link's latency are over.
#pragma once

#include <chrono>
#include <cstddef>

namespace sailor {

class LinkPacer {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~LinkPacer() = default;

  // One message between two ranks of the job. Value type; who sends the message keeps it.
  struct Passage {
    int from = 0, to = 0;
    std::size_t bytes = 0;
    Clock::time_point at{};  // when it was posted, then the end of its newest turn
    int turns = 0;           // taken so far
    bool through = true;     // has taken all
    // Once it is through: when it leaves, not before. The epoch = at once.
    Clock::time_point leaves{};
  };

  // Gives a message that is not through its next turn, which begins at passage.at or when what it needs is
  // free, and updates all that changes. Meant to be called when passage.at has come; late calls cost the
  // message nothing that was free. Messages of one pair take their turns, and so leave, in the order in which
  // they are posted: no turn of one before the other is through. Called by one thread at a time.
  virtual void take_turn(Passage& passage) = 0;
};

}  // namespace sailor
