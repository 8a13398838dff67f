// A rank process over the generations of its job: it trains under one plan after the other, and does not end
// when other ranks do. It keeps its state in memory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "trainer/cli/rank_generation.h"

namespace sailor {

class RankProcess {
 public:
  // `node` is this node's name, as in the controller's messages.
  RankProcess(RankResources& resources, GenerationInbox& inbox, std::string node);

  // Begins with `first`, or waits for a generation if there is none. Throws after a failure of its own, which
  // ends the job; after one of its device it ends the process. When other ranks are lost, the controller
  // decides.
  [[noreturn]] void run(std::optional<Generation> first);

 private:
  int rank_in(const Generation& generation) const;
  void live_through(const Generation& generation, int rank);
  void give(const Generation& generation, int rank);
  void leave(const Generation& generation, int rank, const CommError& error);
  // Reports it, and ends this process: the others can go on.
  [[noreturn]] void end_without_device(const Generation& generation, int rank, const DeviceFailure& failure);

  RankResources& resources_;
  GenerationInbox& inbox_;
  const std::string node_;
  std::unique_ptr<RankGeneration> previous_;  // has this process's state
};

}  // namespace sailor
