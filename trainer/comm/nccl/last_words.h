// What the members of an NCCL communicator tell each other beside it, over the communicator that created it:
// each one message, when it leaves or gives up. NCCL itself notices neither inside a node, nor that members
// call different operations: its kernels wait for ever. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

// What a member is in, so that others can hold it against what they are in. Travels as bytes.
struct Doing {
  char operation[20] = "";  // empty: nothing
  uint64_t collective = 0;  // how many it has begun, this one included
  uint64_t count = 0;       // elements, of all its messages
  ElementType type = ElementType::u8;
  ReduceOp op = ReduceOp::sum;
  int32_t root = -1;
  bool to_all = false;  // a collective: the members of the group are in the same one
  bool stuck = false;   // inside a call of NCCL that should return at once

  bool idle() const { return operation[0] == 0; }
  bool operator==(const Doing&) const = default;
};
// "in all_reduce of 4 f32 (collective 5)".
std::string to_string(const Doing& doing);

struct LastWords {
  enum class Kind : uint8_t { left, aborted, failed, timed_out };
  Kind kind = Kind::left;
  int32_t blamed = -1;    // rank in the communicator, when it failed because of that one
  char reason[200] = "";  // of a failure
  Doing doing;
};

class LastWordsExchange {
 public:
  // `between` has the members of the NCCL communicator, in the same order. Asks for everybody's message.
  explicit LastWordsExchange(std::unique_ptr<Communicator> between);
  ~LastWordsExchange();

  // Sends them to everybody; only the first of a member count. What cannot be sent is lost.
  void say(const LastWords& words) noexcept;
  // Whether they have left this process, or never will.
  bool said() noexcept;
  // Takes what has arrived.
  void listen() noexcept;
  // Of a member; null when it has said nothing (always for oneself).
  const LastWords* from(int rank) const;

  // A member whose connection broke without a word.
  struct Lost {
    int rank = -1;  // in the communicator, or -1
    std::string reason;
  };
  const std::optional<Lost>& lost() const { return lost_; }

 private:
  struct Incoming {
    LastWords words;
    std::unique_ptr<Work> work;  // null once it has arrived, and for oneself
    bool here = false;
  };
  std::unique_ptr<Communicator> between_;  // declared first: destroyed last
  std::vector<Incoming> incoming_;
  LastWords outgoing_;
  std::vector<std::unique_ptr<Work>> sends_;
  bool spoken_ = false;
  std::optional<Lost> lost_;
};

}  // namespace sailor
