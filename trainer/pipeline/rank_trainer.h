// Everything one rank does in an iteration: its stage of the model, its part of the pipeline, gradient sync,
// optimizer.
//
//     RankTrainer trainer(job, plan, rank, factory, data);
//     for (;;) { StepResult r = trainer.step(); ... }
//
// All ranks of the plan construct one and call step() the same number of times. After a CommError the object
// trains no more; what it holds is the state before the step or after it, never in between, and a trainer
// built over a new factory, of any plan, takes it over with restore():
//
//     old_factory.abort();  // and step() of `old` has thrown
//     auto next = std::make_unique<RankTrainer>(job, new_plan, new_rank, new_factory, data);
//     const Restored restored = next->restore(old.get(), directory);  // throws: keep `old`
//     old = std::move(next);  // only now its factory may go
//
// One thread per object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/spec/job_spec.h"
#include "trainer/checkpoint/background_saver.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/device.h"
#include "trainer/data/token_data.h"
#include "trainer/elastic/step_trace.h"
#include "trainer/model/layer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/pipeline/pacer.h"

namespace sailor {

struct StepResult {
  int64_t step = 0;      // 0 is the first
  double loss = 0;       // mean over the tokens of the global batch; the same on every rank
  double grad_norm = 0;  // L2 norm of the whole model's gradient before clipping; the same on every rank
  double learning_rate = 0;
  int64_t tokens = 0;       // of the global batch
  int64_t data_digest = 0;  // of the global batch's tokens, the same under every plan (token_digest.h)
  int max_in_flight = 0;    // most (microbatch, chunk) pairs whose activations this rank held at once
  // Of this rank. They add up to step_s but for bookkeeping.
  double forward_s = 0;
  double backward_s = 0;
  double wait_s = 0;           // for activations and gradients of neighbours
  double gradient_sync_s = 0;  // what of it the backward did not hide, and with ZeRO-1 the values' way back
  double update_s = 0;         // all work per parameter: the optimizer, the gradients' norm
  double step_s = 0;
  std::vector<TracedTask> tasks;  // when asked for with trace_next_step()
};

// What restore() has found.
struct Restored {
  enum class From {
    peers,       // what ranks of the generation before had in use: nothing is lost
    memory,      // copies in host memory of the last snapshot, on some rank at least
    checkpoint,  // the newest complete one on the disk
    start        // nothing: initial values
  };
  From from = From::start;
  int64_t steps_done = 0;            // the next step has this index; the same on every rank
  int64_t bytes_received = 0;        // by this rank, from others
  std::vector<std::string> skipped;  // a line for each newer checkpoint that is damaged
  std::string path;                  // of the checkpoint
};
const char* to_string(Restored::From from);  // as in the enumeration

class RankTrainer {
 public:
  // Throws InputError when job and plan do not fit each other or the model family, CommError when groups
  // cannot be made. `factory`, `data`, `pacer` and what `on` refers to outlive the object.
  //
  // Without `on` everything is in the host's memory. With it parameters, activations, gradients and the
  // optimizer's state are in that of its device, and what ranks exchange of them goes over its factory, and
  // only numbers, checkpoints and states go over `factory`; the calling thread computes on the device
  // (ComputeOn). All ranks of a plan have one, or none.
  RankTrainer(const JobSpec& job, const Plan& plan, int rank, CommFactory& factory, const TokenData& data,
              Pacer* pacer = nullptr, const DevicePlane* on = nullptr);
  ~RankTrainer();

  // One iteration. The gradients of optimizer().slices() stay readable until the next call. Throws
  // std::runtime_error on every rank, naming step and ranks, when the loss or the gradient is not finite:
  // parameters and optimizer are then as before.
  StepResult step();
  // The next step's result has its tasks one by one.
  void trace_next_step();

  // Mean loss over `sequences` sequences spread evenly over `data` (all of it when it has fewer), with the
  // present parameters: the same on every rank, under any plan, up to rounding. Between steps; all ranks call
  // it. `data` has the job's sequence length. Throws CommError.
  double evaluate(const TokenData& data, int64_t sequences);

  int64_t next_step() const;
  void set_next_step(int64_t step);  // after values were loaded by other means than load()

  // The state after next_step() iterations, to and from a directory of checkpoints that all ranks reach; any
  // plan loads what any other has saved. All ranks call these three between the same two steps. save()
  // returns when the state is copied (background_saver.h); saves(true) waits until it is written. From the
  // first call on nobody else may write there (directory_lock.h). Throw InputError, CommError, what
  // load_checkpoint() throws (checkpointing.h), and std::runtime_error when the directory cannot be written
  // to.
  void save(const std::string& directory, int keep);
  LoadedCheckpoint load(const std::string& directory);
  // Of a checkpoint that is being read, by any of these functions: called now and then in the thread that
  // called, with sums over all ranks.
  void tell_loading(LoadProgress progress);
  // Makes this new trainer's state that of a job whose ranks were lost or have changed: a way to begin for
  // any generation, the first one included. All ranks of this trainer's plan call it, before the first step.
  //
  // `previous` is this process's trainer of the generation before, of any plan and rank of the same job,
  // whose step failed or was interrupted (its factory was aborted; nobody is inside one of its functions);
  // nullptr in a process that joins. It is read, and the step that all ranks had finished summing the
  // gradients of is completed in it; its factory must still be there. `directory` of checkpoints may be
  // empty.
  //
  // The newest state that is whole among all ranks is taken: of the survivors, else of copies in memory, else
  // of the directory, else the initial values. What load() says about the directory holds here too. Throws
  // CommError when a rank is lost meanwhile, and whatever load() throws: this trainer is of no use then, and
  // `previous` as good as before for the next try. After it has returned, destroy `previous`.
  // `givers` is the number of ranks behind those of the plan in `factory`: survivors that are in no plan any
  // more, but hold state that may be needed. They call give() meanwhile.
  Restored restore(RankTrainer* previous, const std::string& directory, int givers = 0);
  // The part of a process that is not in the new plan, with its trainer of the generation before, or nullptr.
  // `factory` is that of the new generation. Throws CommError; `previous` is as good as before then.
  static void give(RankTrainer* previous, const JobSpec& job, CommFactory& factory);
  // What came of the saves that have ended since the last call. Throws CommError.
  std::vector<SaveResult> saves(bool wait = false);

  // Writes the model as it is now to a directory in the form of export_model(), from rank 0; the directory is
  // on its file system. All ranks call it between the same two steps. Throws what export_model() throws on
  // rank 0, and CommError on the others then.
  void export_to(const std::string& directory);

  // This rank's parameters in the order of layers.
  std::vector<Parameter*> parameters();
  // Its slices are what this rank updates: with ZeRO-1 a part of its parameters. Their gradients are those of
  // the mean loss.
  Optimizer& optimizer();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sailor
