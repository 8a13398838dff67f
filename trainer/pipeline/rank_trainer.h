// One rank's iteration: its stage of the model, its part of the pipeline, gradient sync, optimizer.
//
//     RankTrainer trainer(job, plan, rank, factory, data);
//     for (;;) { StepResult r = trainer.step(); ... }
//
// All ranks of the plan construct one and call step() equally often. After a CommError the object cannot
// train any more; it has the state before the step or after it, never in between, and a trainer with a new
// factory, for any plan, takes it over with restore():
//
//     old_factory.abort();  // and step() of `old` has thrown
//     auto next = std::make_unique<RankTrainer>(job, new_plan, new_rank, new_factory, data);
//     const Restored restored = next->restore(old.get(), directory);  // throws: keep `old`
//     old = std::move(next);  // only now its factory may go
//
// One thread per object.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/background_saver.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/control/step_trace.h"
#include "trainer/data/token_data.h"
#include "trainer/model/layer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/gradient_noise.h"
#include "trainer/pipeline/pacer.h"

namespace sailor {

struct StepResult {
  int64_t step = 0;       // 0 is the first
  double loss = 0;        // mean over the tokens of the global batch; the same on every rank
  double z_loss = 0;      // the mean over the same tokens, not part of `loss`; the same on every rank
  double grad_norm = 0;   // L2 norm of the whole model's gradient before clipping; the same on every rank
  double loss_scale = 0;  // of this step; 0 = the precision needs none
  // Nothing was updated: gradients overflowed and grad_norm is not finite, or they spiked.
  bool skipped = false;
  int64_t spikes = 0;  // steps of the run that were skipped for theirs, this one included
  // In steps that are due (metrics.gradient_statistics_every): the norm of each layer's gradient, where a
  // matrix that the first and the last layer share counts for the first, and the noise of what they do not
  // share, if there are several pipelines.
  std::vector<double> layer_norms;
  std::optional<GradientNoise> noise;
  bool stop = false;  // some rank wants all to stop after this step; the same on every rank
  // Replicas of the state that differ after this step (training.replicas), a line each; the same on every
  // rank.
  std::vector<std::string> diverged;
  double learning_rate = 0;
  int64_t tokens = 0;       // of the global batch
  int64_t data_digest = 0;  // of the global batch's tokens, the same under every plan (token_digest.h)
  // maximum (microbatch, chunk) pairs whose activations this rank held at the same time
  int max_in_flight = 0;
  // Times of this rank, which add up to step_s except for bookkeeping.
  double forward_s = 0;
  double backward_s = 0;       // with ZeRO-2 also waiting for the sums of earlier layers
  double wait_s = 0;           // for activations and gradients from neighbours
  double gradient_sync_s = 0;  // not overlapped with the backward; with ZeRO-1 also gathering the values
  double update_s = 0;         // all work per parameter: the optimizer, the gradient norm
  double step_s = 0;
  std::vector<TracedTask> tasks;  // if requested with trace_next_step()
};

// The result of restore().
struct Restored {
  enum class From {
    peers,       // state in use on ranks of the previous generation: nothing is lost
    memory,      // copies of the last snapshot in host memory, on some rank at least
    checkpoint,  // the newest complete one on disk
    start        // initial values
  };
  From from = From::start;
  int64_t steps_done = 0;            // the index of the next step; the same on every rank
  int64_t bytes_received = 0;        // by this rank, from others
  std::vector<std::string> skipped;  // a line for each newer checkpoint that is damaged
  std::string path;                  // of the checkpoint
};
inline const char* to_string(Restored::From from) {  // names as in the enumeration
  return std::array{"peers", "memory", "checkpoint", "start"}[static_cast<std::size_t>(from)];
}

class RankTrainer {
 public:
  // Throws InputError when job and plan do not match each other or the model family, CommError when groups
  // cannot be created. `factory`, `data`, `pacer` and what `on` refers to outlive the object.
  //
  // Without `on` everything is in host memory. With it parameters, activations, gradients and optimizer
  // states are in the memory of its device, ranks exchange them over its factory, and only numbers,
  // checkpoints and states use `factory`; the calling thread computes on the device (ComputeOn). All ranks of
  // a plan have one, or none.
  RankTrainer(const JobSpec& job, const Plan& plan, int rank, CommFactory& factory, const TokenData& data,
              Pacer* pacer = nullptr, const DevicePlane* on = nullptr);
  ~RankTrainer();

  // One iteration. `stop`: this rank wants all to stop after it. The gradients of optimizer().slices() stay
  // readable until the next call. Throws std::runtime_error on every rank, naming step and ranks, when the
  // loss or the gradient is not finite: parameters and optimizer are then unchanged. With a loss scale, a
  // gradient that is not finite skips the update instead, on every rank, until too many have (loss_scaler.h);
  // so does a spike, if the job says so (spike_guard.h). Replicas that differ are an error after the update,
  // if the job says so.
  StepResult step(bool stop = false);
  // The result of the next step includes its single tasks.
  void trace_next_step();

  // Mean loss over `sequences` sequences spread evenly over `data` (all of it if it has fewer), with the
  // current parameters, or their averages (training.ema.validate): the same on every rank, under any plan, up
  // to rounding. Call it between steps, on all ranks. `data` has the job's sequence length. Throws CommError.
  double evaluate(const TokenData& data, int64_t sequences);

  int64_t next_step() const;
  void set_next_step(int64_t step);  // after values were loaded by other means than load()

  // Saves or loads the state after next_step() iterations in a checkpoint directory that all ranks reach; any
  // plan loads the checkpoints of any other. All ranks call these three between the same two steps. save()
  // returns when the state is copied (background_saver.h); saves(true) waits until it is written. From the
  // first call on no other run may write there (directory_lock.h). Throw InputError, CommError, what
  // load_checkpoint() throws (checkpointing.h), and std::runtime_error when the directory cannot be written
  // to.
  void save(const std::string& directory, int keep);
  LoadedCheckpoint load(const std::string& directory);
  // Progress of reading a checkpoint, for any of these functions: called periodically in the calling thread,
  // with sums over all ranks.
  void tell_loading(LoadProgress progress);
  // Before a trainer of the next generation is built beside `previous`, whose factory was aborted: completes
  // the step for which all ranks had reduced gradients, and frees what is not the state, activations and
  // gradients. If the device has no room for the next one, the state moves to host memory; if that has none
  // either, it is dropped, and restore() takes it from elsewhere. `previous` is then only of use for
  // restore() and give(). All ranks of `factory`, the one of the next generation, call it, those without a
  // previous trainer with nullptr. Returns whether this rank's state is still there. Throws CommError, after
  // which it can be called again.
  struct Room {
    std::optional<int64_t> needed_bytes{};  // by the next trainer; absent = as much as by this one
    bool drop_state = false;
  };
  static bool make_room(RankTrainer* previous, CommFactory& factory, const Room& room);
  // Memory of values, gradients and optimizer states of a rank of the plan, without ZeRO-1.
  static int64_t state_bytes(const JobSpec& job, const Plan& plan, int rank);
  // Restores the state of the job in this new trainer after ranks were lost or changed: the start of any
  // generation, the first one included. All ranks of this trainer's plan call it, before the first step.
  //
  // `previous` is this process's trainer of the previous generation, for any plan and rank of the same job,
  // whose step failed or was interrupted (its factory was aborted; no thread is inside one of its functions);
  // nullptr in a process that joins. Its state is read, after completing the step for which all ranks had
  // reduced gradients; its factory must still exist. `directory` of checkpoints may be empty.
  //
  // Uses the newest complete state: of the survivors, else of copies in memory, else of the directory, else
  // the initial values. What load() says about the directory applies here too. Throws CommError when a rank
  // is lost meanwhile, and whatever load() throws: this trainer is then unusable, and `previous` can be used
  // for the next attempt. After it has returned, destroy `previous`. `givers` is the number of ranks after
  // those of the plan in `factory`: survivors that are not in the plan, but have state that may be needed.
  // They call give() meanwhile.
  Restored restore(RankTrainer* previous, const std::string& directory, int givers = 0);
  // The counterpart of restore() in a process that is not in the new plan, with its trainer of the previous
  // generation, or nullptr. `factory` is that of the new generation. Throws CommError; `previous` can then be
  // used again.
  static void give(RankTrainer* previous, const JobSpec& job, CommFactory& factory);
  // Results of the saves that have ended since the last call. Throws CommError.
  std::vector<SaveResult> saves(bool wait = false);

  // Writes the current model to a directory like export_model(), or the adapters like export_adapters(), from
  // rank 0, on whose file system the directory is. All ranks call it between the same two steps. Throws what
  // export_model() throws on rank 0, and CommError on the others then.
  void export_to(const std::string& directory);

  // This rank's parameters in the order of layers.
  std::vector<Parameter*> parameters();
  // Its slices are what this rank updates: with ZeRO-1 a part of its parameters. Their gradients are those of
  // the mean loss.
  Optimizer& optimizer();
  // Memory of this rank for gradients, with what their reduction needs.
  int64_t gradient_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
