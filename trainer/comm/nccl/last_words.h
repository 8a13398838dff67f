// Messages that the members of an NCCL communicator exchange over the communicator that created it: one each,
// when it leaves or gives up. NCCL itself detects neither a lost member inside a node nor mismatched
// operations: its kernels wait forever. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"

namespace sailor {

// The current operation of a member, to compare with that of others. Sent as bytes.
struct Doing {
  char operation[20] = "";  // empty: nothing
  uint64_t collective = 0;  // number of collectives begun, this one included
  uint64_t count = 0;       // elements of all its messages
  ElementType type = ElementType::u8;
  ReduceOp op = ReduceOp::sum;
  int32_t root = -1;
  bool to_all = false;  // a collective: all members of the group must be in the same one
  bool stuck = false;   // inside a call of NCCL that should return at once

  bool idle() const { return operation[0] == 0; }
  bool operator==(const Doing&) const = default;
};
// "in all_reduce of 4 f32 (collective 5)".
std::string to_string(const Doing& doing);

struct LastWords {
  enum class Kind : uint8_t { left, aborted, failed, timed_out };
  Kind kind = Kind::left;
  int32_t blamed = -1;    // rank in the communicator that caused the failure
  char reason[200] = "";  // of a failure
  Doing doing;
};

class LastWordsExchange {
 public:
  // `between` has the members of the NCCL communicator, in the same order. Posts receives for all messages.
  explicit LastWordsExchange(std::unique_ptr<Communicator> between);
  ~LastWordsExchange();

  // Sends the message to all; only the first message of a member counts. Errors are ignored.
  void say(const LastWords& words) noexcept;
  // Have the messages left this process, or will they never?
  bool said() noexcept;
  // Receives what has arrived.
  void listen() noexcept;
  // The message of a member; null if it has sent none (always for oneself).
  const LastWords* from(int rank) const;

  // A member whose connection broke without a message.
  struct Lost {
    int rank = -1;  // in the communicator, or -1
    std::string reason;
  };
  const std::optional<Lost>& lost() const { return lost_; }

 private:
  struct Incoming {
    LastWords words;
    std::unique_ptr<Work> work;  // null after it has arrived, and for oneself
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
