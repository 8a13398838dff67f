// One rank's life in one generation: its communicators, its trainer, its steps, and what is said about them.
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
#include "trainer/elastic/control_client.h"
#include "trainer/elastic/generation_inbox.h"
#include "trainer/gpu/gpu.h"
#include "trainer/model/torch_device.h"
#include "trainer/pipeline/emulated_device.h"
#include "trainer/pipeline/emulated_network.h"
#include "trainer/pipeline/rank_trainer.h"

namespace sailor {

// What a rank process has in all its generations.
struct RankResources {
  const JobSpec& job;
  const TokenData& data;
  Listener& listener;
  JobSecret secret;
  ControlClient& control;
  std::string run_directory;
  std::atomic<int64_t>& step_began_ns;  // on the steady clock; 0 = inside no step
  int& rank;                            // in the present generation, or the last one
  int64_t trace_step = 0;
  int device_contexts = 0;              // made by this process
  int max_in_flight = 0;                // of all generations
  EmulatedDevice::Counters counters{};  // of generations that are over
  bool bound = false;                   // to the processors close to its GPU, if there are any
  std::unique_ptr<Gpu> gpu{};           // for the whole life of the process; null: processors compute
  std::optional<ComputeOn> computes{};  // on it
};

// Where the ranks of a generation are.
std::vector<Endpoint> endpoints_of(const Generation& assignment);

class RankGeneration {
 public:
  RankGeneration(RankResources& resources, const Generation& assignment, int rank);
  ~RankGeneration();

  int number() const { return number_; }
  const RankSlot& slot() const { return slot_; }
  int64_t steps_done() const { return trainer_ ? trainer_->next_step() : 0; }

  // Connects to the others and takes the state over; `previous` may be null.
  Started start(RankGeneration* previous);
  // Of the trainer whose state this process has; null before start() has returned.
  RankTrainer* trainer() { return trainer_.get(); }
  // Returns when all steps are done and reported, or after the step that an orderly interrupt names.
  void train(const GenerationInbox& inbox);
  void abort() noexcept;

 private:
  // What this cluster only emulates of a plan, as far as one rank has to do with it.
  struct EmulatedParts {
    std::unique_ptr<EmulatedDevice> device;    // when the rank's GPU type is emulated
    std::unique_ptr<EmulatedNetwork> network;  // when any GPU type of the plan is
  };
  static EmulatedParts emulated_parts(const JobSpec& job, const Plan& plan, const RankSlot& slot,
                                      const std::string& run_directory);

  void bind_to_gpu();
  // Of the GPU, when all ranks of the plan have one; nothing when none has. Throws CommError, and
  // std::runtime_error where only some have.
  std::optional<DevicePlane> agree_on_plane();
  int64_t peak_bytes() const;
  StepReport do_step();
  void save_if_due();
  void save_now();
  void report(const SaveResult& result);
  void tell(const std::string& text);
  void finish();

  RankResources& resources_;
  const int number_;
  const Plan plan_;
  const int givers_;  // ranks behind those of the plan
  const RankSlot slot_;
  const std::string checkpoints_;  // directory; empty = none
  const std::string address_;      // at which other ranks reach this one
  EmulatedParts emulation_;
  SocketFactory factory_;
  std::unique_ptr<CommFactory> gpu_factory_;  // above it; null without a GPU
  std::unique_ptr<RankTrainer> trainer_;
};

}  // namespace sailor
