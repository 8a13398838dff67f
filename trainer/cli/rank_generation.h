// A rank in one generation: its communicators, its trainer, its steps, and its reports.
//
//     RankGeneration now(job, assignment, rank, ...);     // nothing is connected yet
//     inbox.enter(number, [&] { now.abort(); });
//     control.send(now.start(previous));                  // groups and state; then `previous` may go
//     now.train(inbox);                                   // until the last step, or the generation's end
//
// start() and train() throw what the trainer throws, CommError above all. One thread per object; abort() from
// any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "planner/plan/rank_layout.h"
#include "trainer/comm/socket_plane.h"
#include "trainer/control/control_client.h"
#include "trainer/control/generation_inbox.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"
#include "trainer/pipeline/emulated_device.h"
#include "trainer/pipeline/emulated_network.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {

// State of a rank process across generations.
struct RankResources {
  const JobSpec& job;
  const TokenData& data;
  Listener& listener;
  JobSecret secret;
  bool encrypts_data = false;
  ControlClient& control;
  std::string run_directory;
  std::atomic<int64_t>& step_began_ns;  // on the steady clock; 0 = not in a step
  int& rank;                            // in the current generation, or the last one
  int64_t trace_step = 0;
  int max_in_flight = 0;                // over all generations
  EmulatedDevice::Counters counters{};  // of finished generations
  bool bound = false;                   // to the processors close to its GPU, if any
  std::unique_ptr<Gpu> gpu{};           // for the whole life of the process; null: computes on processors
  std::optional<ComputeOn> computes{};  // set if there is a GPU
};

// Addresses of the ranks of a generation.
std::vector<Endpoint> endpoints_of(const Generation& assignment);

class RankGeneration {
 public:
  RankGeneration(RankResources& resources, const Generation& assignment, int rank);
  ~RankGeneration();

  int number() const { return number_; }
  const RankSlot& slot() const { return slot_; }
  int64_t steps_done() const { return trainer_ ? trainer_->next_step() : 0; }

  // Connects to the others and takes over the state; `previous` may be null.
  Started start(RankGeneration* previous);
  // The trainer with this process's state; null before start() has returned.
  RankTrainer* trainer() { return trainer_.get(); }
  // Returns when all steps are done and reported, or after the step on which ranks agree (Interrupt).
  void train(GenerationInbox& inbox);
  void abort() noexcept;
  // Has it completed a step? Then its plan fits into memory.
  bool has_stepped() const { return stepped_; }
  // The text for a plan that does not fit into the GPU's memory.
  std::string memory_error(const std::string& cause) const;

 private:
  // The emulated parts of a plan, for one rank.
  struct EmulatedParts {
    std::unique_ptr<EmulatedDevice> device;    // if the rank's GPU type is emulated
    std::unique_ptr<EmulatedNetwork> network;  // if any GPU type of the plan is emulated
  };
  static EmulatedParts emulated_parts(const JobSpec& job, const Plan& plan, const RankSlot& slot,
                                      const std::string& run_directory);

  void bind_to_gpu();
  // The GPU's plane if all ranks of the plan have a GPU; nothing if none has. Throws CommError, and
  // std::runtime_error if only some have.
  std::optional<DevicePlane> agree_on_plane();
  int64_t peak_bytes() const;
  StepReport do_step(bool& stop);
  void save_if_due();
  void save();
  void save_now();
  void report(const SaveResult& result);
  void tell(const std::string& text, std::optional<double> save_s = {});
  void finish();

  RankResources& resources_;
  const int number_;
  const Plan plan_;
  const bool drops_state_;  // before the trainer is built
  const int givers_;        // ranks that are not in the plan and only send state
  const RankSlot slot_;
  const std::string checkpoints_;  // directory; empty = none
  const std::string address_;      // at which other ranks reach this one
  EmulatedParts emulation_;
  SocketFactory factory_;
  std::unique_ptr<CommFactory> gpu_factory_;  // on top of it; null without a GPU
  std::unique_ptr<RankTrainer> trainer_;
  bool stepped_ = false;
  int64_t saving_step_ = -1;  // the step whose state was saved last, or is being saved
};

}  // namespace sailor
