#include "trainer/pipeline/rank_trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "planner/plan/rank_layout.h"
#include "planner/process/seconds_since.h"
#include "planner/spec/model_family.h"
#include "trainer/checkpoint/directory_lock.h"
#include "trainer/checkpoint/export_from_ranks.h"
#include "trainer/checkpoint/held_state.h"
#include "trainer/checkpoint/state_transfer.h"
#include "trainer/checkpoint/stored_model.h"
#include "trainer/checkpoint/work_on_all_ranks.h"
#include "trainer/model/element_types.h"
#include "trainer/model/torch_device.h"
#include "trainer/optim/loss_scaler.h"
#include "trainer/optim/lr_schedule.h"
#include "trainer/optim/spike_guard.h"
#include "trainer/parallel/common_order.h"
#include "trainer/parallel/gradient_sync.h"
#include "trainer/parallel/orthogonalization.h"
#include "trainer/parallel/parameter_place.h"
#include "trainer/parallel/replica_check.h"
#include "trainer/pipeline/executor.h"
#include "trainer/pipeline/load_batch.h"
#include "trainer/pipeline/rank_stage.h"
#include "trainer/pipeline/step_errors.h"
#include "trainer/pipeline/step_progress.h"
#include "trainer/pipeline/tensor_cache.h"

namespace sailor {
namespace {

using Clock = Pacer::Clock;
static_assert(std::is_same_v<Clock, StepRecorder::Clock>);

std::unique_ptr<Communicator> all_ranks(CommFactory& factory, const std::string& name, int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return factory.create(name, ranks);
}

// The job under the plan, and on rank 0 which base model its adapters are for.
JobSpec job_of_rank(const Plan& plan, const JobSpec& whole, int rank) {
  JobSpec job = job_under(plan, whole);
  if (rank == 0 && job.training.lora && !job.model.from.empty()) {
    job.model.from = std::filesystem::absolute(job.model.from).lexically_normal();
    job.training.lora->base_digest = StoredModel(job.model).digest();
  }
  return job;
}

}  // namespace

// Members that others refer to come first.
struct RankTrainer::Impl {
  const JobSpec job;
  const Plan plan;
  const RankLayout layout;
  const RankSlot slot;
  CommFactory& factory;
  const DevicePlane on;
  const TokenData& data;
  Pacer* const pacer;
  RankStage stage;
  GradientSync gradient_sync;
  std::unique_ptr<Communicator> world;  // all ranks, for a few numbers per step
  std::unique_ptr<Optimizer> optimizer;
  // If the optimizer needs one, which is `muon` then.
  Muon* const muon;
  std::optional<Orthogonalization> orthogonalization;
  std::optional<ReplicaCheck> replica_check;  // if the job has one
  std::optional<LossScaler> loss_scaler;      // if the precision needs one; equal on all ranks
  std::optional<SpikeGuard> spike_guard;      // if the job has one; equal on all ranks
  StepRecorder recorder;
  PipelineExecutor executor;
  std::string locked;                             // the checkpoint directory with our lock
  std::unique_ptr<DirectoryLock> directory_lock;  // on rank 0
  std::unique_ptr<BackgroundSaver> saver;         // once something was saved
  std::vector<SaveResult> failed_saves;           // that did not even begin
  // In memory, of the last snapshots that the trainer before took; until there are new ones.
  std::vector<std::shared_ptr<const StateSnapshot>> inherited_copies;
  StepProgress progress;
  LoadProgress tell_loading;
  std::vector<double> digests;  // of the step's microbatches' tokens, where this rank answers for them
  bool trace_next_step = false, warm = false;
  bool state_on_host = false;  // after make_room()

  Impl(const JobSpec& j, const Plan& p, int rank, CommFactory& f, const TokenData& d, Pacer* pc,
       const DevicePlane* device)
      : job(job_of_rank(p, j, rank)),
        plan((check_trainable(j, p), p)),
        layout(plan),
        slot(layout.slots().at(static_cast<std::size_t>(rank))),
        factory(f),
        on(device ? *device : DevicePlane{host_device(), f}),
        data(d),
        pacer(pc),
        stage(job, plan, layout, rank, on.factory, place_of(on.device)),
        gradient_sync(plan, layout, rank, on.factory, stage.tp.get(), stage.trained(),
                      job.model.tied_embeddings && !job.training.lora, on.device),
        world(all_ranks(factory, "world", layout.size())),
        optimizer((set_initial_values(),  // which masters are copies of
                   make_optimizer(job.training.optimizer, in_groups(job, gradient_sync.slices()),
                                  offloads_optimizer(stage_of(plan, slot)) ? &on.device : nullptr))),
        muon(dynamic_cast<Muon*>(optimizer.get())),
        recorder(on.device),
        executor(stage.position, job.model, scalar_type(job.training.precision), stage.chunks,
                 own_steps(plan, slot), stage.previous.get(), stage.next.get(), pacer, recorder, on.device) {
    if (kind_of(job.training.precision).scales_loss) loss_scaler.emplace(job.training.loss_scale);
    if (job.training.on_spike) spike_guard.emplace(*job.training.on_spike);
    if (job.training.ema) optimizer->keep_average();
    if (muon) orthogonalization.emplace(job, layout, rank, *muon, *world, on.factory, on.device);
    if (job.training.replicas.check_every > 0)
      replica_check.emplace(plan, layout, rank, gradient_sync, stage.tp.get(), *world,
                            job.model.tied_embeddings && !job.training.lora, on.device);
    if (pacer) pacer->joins(stage.tp.get(), stage.cp.get());
    release_cached_tensors();  // initial values were drawn in sizes of their own
  }

  // With ZeRO-3: a layer at a time, of which the own part is kept. Else the layers have them.
  void set_initial_values() {
    if (!gathers_every_microbatch(plan)) return;
    stage.for_each_filled_layer(job, layout, place_of(on.device), [&](Layer& layer) {
      for (const Parameter& parameter : layer.parameters())
        gradient_sync.set_values(parameter.name, parameter.value);
    });
  }

  int64_t next_step() const { return progress.version().steps_done; }

  // All that the device computed is valid: nothing of it comes from an aborted communication.
  void settle() const {
    stage.settle();
    gradient_sync.settle();
    if (orthogonalization) orthogonalization->settle();
  }

  // One rank of each pipeline's first stage answers for what the pipeline was fed with.
  bool answers_for_data() const { return is_first_of_stage(slot) && stage.chunks.front().first_layer() == 0; }

  PipelineWork training_work() {
    PipelineWork work;
    work.microbatches = plan.pipelines[static_cast<std::size_t>(slot.pipeline)].microbatches;
    digests.assign(static_cast<std::size_t>(work.microbatches), 0);
    work.sequences = [this](int m) { return microbatch_range(plan, slot.pipeline, m).sequences; };
    work.load = [this](int m, bool tokens) {
      const MicrobatchRange range = microbatch_range(plan, slot.pipeline, m);
      std::vector<TokenData::Place> places;
      for (int i = 0; i < range.sequences; ++i)
        places.push_back(data.place(next_step(), range.first_sequence + i));
      double digest = 0;
      Batch batch = load_batch(data, places, tokens, place_of(on.device), &digest);
      if (tokens && answers_for_data()) digests[static_cast<std::size_t>(m)] = digest;
      batch.step = next_step();
      batch.first_sequence = range.first_sequence;
      return batch;
    };
    work.global_targets = data.counted_targets(next_step());
    work.loss_scale = loss_scaler ? loss_scaler->scale() : 1;
    work.forward_begins = [this](int layer) { gradient_sync.forward_begins(layer); };
    work.forward_ends = [this](int layer) { gradient_sync.forward_ends(layer); };
    work.layer_begins = [this](int layer) { gradient_sync.layer_begins(layer); };
    work.layer_finished = [this](int layer, bool last) { gradient_sync.layer_finished(layer, last); };
    work.sums_every_microbatch = sums_every_microbatch(plan);
    work.gathers_every_microbatch = gathers_every_microbatch(plan);
    return work;
  }

  // Validation passes over the pipelines in the plan's microbatches, as many sequences at a time as an
  // iteration has; the last time may have fewer.
  double evaluate(const TokenData& validation, int64_t sequences) {
    if (!job.training.ema || !job.training.ema->validate) return evaluate_values(validation, sequences);
    on.device.order(on.device.copies(), on.device.compute());  // of what changes places
    optimizer->exchange_average();
    double loss = 0;
    try {
      gradient_sync.share_values();
      loss = evaluate_values(validation, sequences);
    } catch (...) {
      optimizer->exchange_average();  // what others need of the state is in the slices
      throw;
    }
    optimizer->exchange_average();
    gradient_sync.share_values();
    settle();
    return loss;
  }

  double evaluate_values(const TokenData& validation, int64_t sequences) {
    sequences = std::min(sequences, validation.num_windows());
    double loss = 0;
    recorder.begin(false);
    for (int64_t first = 0; first < sequences; first += job.training.global_batch) {
      PipelineWork work = training_work();
      work.sequences = [&](int m) {
        const MicrobatchRange range = microbatch_range(plan, slot.pipeline, m);
        return static_cast<int>(
            std::clamp<int64_t>(sequences - first - range.first_sequence, 0, range.sequences));
      };
      work.load = [&](int m, bool tokens) {
        const int64_t begin = first + microbatch_range(plan, slot.pipeline, m).first_sequence;
        std::vector<TokenData::Place> places;
        for (int i = 0; i < work.sequences(m); ++i)
          places.push_back(validation.spread_place(begin + i, sequences));
        return load_batch(validation, places, tokens, place_of(on.device));
      };
      executor.warm_up(work, {});
      gradient_sync.begin_evaluation([&](int m) { return work.sequences(m) > 0; });
      loss += executor.evaluate(work);
      gradient_sync.end_evaluation();
    }
    settle();
    if (slot.tp_rank != 0) loss = 0;
    world->all_reduce(&loss, 1, ElementType::f64, ReduceOp::sum);
    int64_t targets = 0;
    for (int64_t i = 0; i < sequences; ++i)
      targets += validation.layout(validation.spread_place(i, sequences)).counted_targets();
    return loss / static_cast<double>(std::max<int64_t>(1, targets));
  }

  void export_to(const std::string& directory) {
    on.device.wait(on.device.compute());
    settle();
    std::optional<int> gathered;
    export_from_ranks(directory, job, plan, layout, *world, stage.parameters(), [&](int layer) {
      if (gathered == layer) return;
      gradient_sync.gather_values(layer);
      on.device.wait(on.device.compute());
      gathered = layer;
    });
  }

  RankState state() {
    return {job,
            plan,
            layout,
            slot,
            stage.trained(),
            *optimizer,
            on.device,
            loss_scaler ? &*loss_scaler : nullptr,
            spike_guard ? &*spike_guard : nullptr};
  }

  // Rank 0 speaks for the job.
  Outcome lock(const std::string& directory) {
    if (directory == locked) return {};
    Outcome locking = on_all_ranks(*world, [&] {
      if (slot.rank == 0) directory_lock = std::make_unique<DirectoryLock>(directory);
    });
    if (locking.failure == Outcome::Failure::none) locked = directory;
    return locking;
  }

  void save(const std::string& directory, int keep) {
    const Outcome locking = lock(directory);
    if (locking.failure == Outcome::Failure::other) {
      SaveResult& failed = failed_saves.emplace_back();
      failed.steps_done = next_step();
      failed.error = "checkpoint: " + locking.text;
      return;
    }
    require(locking);
    if (!saver)
      saver = std::make_unique<BackgroundSaver>(job, plan, all_ranks(factory, "saver", layout.size()));
    inherited_copies.clear();
    saver->start(state(), progress.version(), directory, keep);
  }

  std::vector<SaveResult> saves(bool wait) {
    std::vector<SaveResult> results = std::exchange(failed_saves, {});
    if (!saver) return results;
    if (wait) saver->wait();
    for (SaveResult& result : saver->results()) results.push_back(std::move(result));
    return results;
  }

  LoadedCheckpoint load(const std::string& directory, int64_t lineage = 0) {
    require(lock(directory));
    progress.is_replaced();
    LoadedCheckpoint loaded = load_checkpoint(*world, state(), directory, tell_loading);
    progress.starts_from({loaded.path.empty() ? next_step() : loaded.steps_done, lineage}, lineage);
    return loaded;
  }

  // All that this process has of the state of training, for those who go on with it.
  std::vector<HeldState> held() {
    std::vector<HeldState> held;
    if (progress.whole()) held.push_back(held_by(state(), progress.version()));
    for (const auto& copy : copies()) held.push_back(held_by(job, layout, *copy));
    return held;
  }

  std::vector<std::shared_ptr<const StateSnapshot>> copies() const {
    std::vector<std::shared_ptr<const StateSnapshot>> all = inherited_copies;
    if (!saver) return all;
    for (auto& copy : saver->copies()) all.push_back(std::move(copy));
    return all;
  }

  // Comes to the last step that any of the survivors has, and lets go of what is not the state.
  static void finish_generation(Communicator& everybody, Impl* previous) {
    if (previous) previous->stop_saving();
    const std::optional<StepSums> owed =
        StepProgress::owed_update(everybody, previous ? &previous->progress : nullptr);
    if (owed) previous->update(*owed);
  }

  static bool make_room(Impl* previous, CommFactory& factory, const Room& room) {
    const auto everybody = all_ranks(factory, "make room", factory.size());
    finish_generation(*everybody, previous);
    if (previous) previous->keep_only_state(room);
    return !previous || previous->progress.whole();
  }

  void keep_only_state(const Room& room) {
    progress.step_begins();  // without gradients no update is possible
    on.device.wait(on.device.copies());
    executor.drop();
    gradient_sync.drop_gradients();
    if (muon) muon->drop_directions();
    for (Parameter* parameter : stage.trained()) parameter->value.mutable_grad() = at::Tensor();
    for (Parameter* parameter : stage.parameters()) {  // the next one reads it again
      if (parameter->frozen) parameter->value.storage().unsafeGetStorageImpl()->reset();
    }
    if (room.drop_state) return drop_state();
    if (has_master_copies()) {  // which the weights follow from
      for (c10::StorageImpl* storage : value_storages()) storage->reset();
    }
    if (state_on_host || !lacks_room(room)) return;
    try {
      move_state_to_host();
    } catch (const std::exception&) {  // which has no room either
      drop_state();
    }
  }

  // It comes from other ranks, from copies or from a checkpoint.
  void drop_state() {
    progress.is_replaced();
    for (c10::StorageImpl* storage : optimizer_storages()) storage->reset();
    for (c10::StorageImpl* storage : value_storages()) storage->reset();
  }

  std::set<c10::StorageImpl*> optimizer_storages() const {
    std::set<c10::StorageImpl*> storages;
    for (std::size_t i = 0; i < optimizer->slices().size(); ++i) {
      for (const OptimizerState& state : optimizer->state(i))
        storages.insert(state.tensor.storage().unsafeGetStorageImpl());
    }
    return storages;
  }

  std::set<c10::StorageImpl*> value_storages() {
    std::set<c10::StorageImpl*> storages;
    for (const Parameter* parameter : stage.trained())
      storages.insert(parameter->value.storage().unsafeGetStorageImpl());
    for (const OptimizerSlice& slice : optimizer->slices())
      storages.insert(slice.value.storage().unsafeGetStorageImpl());
    return storages;
  }

  bool lacks_room(const Room& room) {
    const int64_t total = on.device.total_bytes();
    if (total == 0) return false;
    const int64_t needed = room.needed_bytes ? *room.needed_bytes : state_bytes(job, plan, slot.rank);
    return total - on.device.used_bytes() < needed;
  }

  bool has_master_copies() const {
    const PrecisionKind& kind = kind_of(job.training.precision);
    return kind.element_bytes < kind.state_bytes;
  }

  // Reads of it are copies by the device, which reads host memory as well as its own.
  void move_state_to_host() {
    std::set<c10::StorageImpl*> moved;
    if (!offloads_optimizer(stage_of(plan, slot))) moved = optimizer_storages();
    if (!has_master_copies()) moved.merge(value_storages());
    for (c10::StorageImpl* storage : moved) move_to_host(*storage, on.device);
    state_on_host = true;
  }

  static void give(Impl* previous, const JobSpec& job, CommFactory& factory) {
    const auto everybody = all_ranks(factory, "restore", factory.size());
    finish_generation(*everybody, previous);
    transfer_state(*everybody, previous ? previous->held() : std::vector<HeldState>(), nullptr,
                   job.training.precision);
  }

  Restored restore(Impl* previous, const std::string& directory, int givers) {
    progress.is_replaced();
    const auto with_givers = givers > 0 ? all_ranks(factory, "restore", layout.size() + givers) : nullptr;
    Communicator& everybody = with_givers ? *with_givers : *world;
    finish_generation(everybody, previous);
    if (previous) inherited_copies = previous->copies();
    int64_t lineage = slot.rank == 0 ? new_lineage() : 0;
    world->broadcast(&lineage, 1, ElementType::i64, 0);
    Restored restored;
    RankState target = this->state();
    target.scratch = gradient_sync.gradients();
    if (const auto state = transfer_state(everybody, previous ? previous->held() : std::vector<HeldState>(),
                                          &target, job.training.precision)) {
      restored.from = state->from_copies ? Restored::From::memory : Restored::From::peers;
      restored.bytes_received = state->bytes_received;
      progress.starts_from(state->version, lineage);
      // That the directory cannot be written to is told when something is to be saved.
      const Outcome locking = directory.empty() ? Outcome() : lock(directory);
      if (locking.failure == Outcome::Failure::input) require(locking);
    } else {
      LoadedCheckpoint loaded;
      if (directory.empty()) {
        progress.starts_from({0, lineage}, lineage);
      } else {
        loaded = load(directory, lineage);
      }
      restored.from = loaded.path.empty() ? Restored::From::start : Restored::From::checkpoint;
      restored.skipped = std::move(loaded.skipped);
      restored.path = std::move(loaded.path);
    }
    restored.steps_done = next_step();
    world->barrier();
    return restored;
  }

  // Somebody else goes on: what is being written is given up, and others may write to the directory.
  void stop_saving() {
    if (saver) saver->give_up();
    directory_lock.reset();
    locked.clear();
  }

  // What a step with these sums comes to, the same on every rank.
  enum class Verdict { update, overflow, spike, not_finite };
  Verdict verdict(const StepSums& sums) const {
    const bool finite_loss = std::isfinite(sums.loss), finite_norm = std::isfinite(sums.gradient_norm);
    if (loss_scaler && finite_loss && !finite_norm) return Verdict::overflow;
    if (spike_guard && spike_guard->is_spike(sums.loss, sums.gradient_norm)) return Verdict::spike;
    return finite_loss && finite_norm ? Verdict::update : Verdict::not_finite;
  }

  // The step is committed, and so may be skipped if it is not an update.
  void update(const StepSums& sums) {
    const Verdict verdict = this->verdict(sums);
    if (verdict == Verdict::update) {
      on.device.order(on.device.copies(), on.device.compute());  // of the state before
      optimizer->step(learning_rate(job.training, next_step()), clipping_factor(sums.gradient_norm));
      if (job.training.ema) optimizer->update_average(job.training.ema->decay);
    }
    if (loss_scaler) loss_scaler->step_ended(!std::isfinite(sums.gradient_norm));
    if (spike_guard && verdict != Verdict::overflow)
      spike_guard->step_ended(sums.gradient_norm, verdict == Verdict::spike);
    progress.updated();
  }

  // Throws unless the step may be committed.
  void check_verdict(Verdict verdict, const StepResult& result, double own_loss) {
    if (verdict == Verdict::not_finite) stop_not_finite(result, own_loss);
    if (verdict == Verdict::overflow && !loss_scaler->may_skip())
      throw std::runtime_error(overflow_text(result, job.training.loss_scale, loss_scaler->state()));
    if (verdict == Verdict::spike && !spike_guard->may_skip())
      throw std::runtime_error(spike_text(result, spike_guard->state()));
  }

  // The optimizer has run since `start`: the device that is emulated may need longer.
  void pace_update(Clock::time_point start) {
    if (!pacer) return;
    const PipelineRange sharing = zero_group_of(plan, slot.pipeline);
    const int sharers = (sharing.end - sharing.first) * slot.shape.copies();
    for (const Chunk& chunk : stage.chunks) {
      pacer->computed({.phase = Phase::update,
                       .pipeline = slot.pipeline,
                       .stage = slot.stage,
                       .first_layer = chunk.first_layer(),
                       .end_layer = chunk.end_layer(),
                       .shape = slot.shape,
                       .update_parts = shards_optimizer(plan.zero) ? sharers : 1,
                       .offloaded_bytes = optimizer->offloaded_bytes() / plan.interleave},
                      start);
      start = Clock::now();
    }
  }

  // Where it came from is worth one more collective: this was the last.
  [[noreturn]] void stop_not_finite(const StepResult& result, double own_loss) {
    std::vector<double> bad(static_cast<std::size_t>(layout.size()));
    bool own_bad = !std::isfinite(own_loss);
    // Sums over replicas have spread a bad gradient by now, but not a bad share of the loss.
    if (std::isfinite(result.loss)) {
      for (const OptimizerSlice& slice : optimizer->slices())
        own_bad = own_bad || !at::isfinite(slice.gradient).all().item<bool>();
    }
    bad[static_cast<std::size_t>(slot.rank)] = own_bad ? 1 : 0;
    world->all_reduce(bad.data(), static_cast<int64_t>(bad.size()), ElementType::f64, ReduceOp::sum);
    std::string where;
    for (const RankSlot& s : layout.slots()) {
      if (bad[static_cast<std::size_t>(s.rank)] == 0) continue;
      where += fmt::format("{}rank {} (pipeline {}, stage {})", where.empty() ? "" : ", ", s.rank, s.pipeline,
                           s.stage);
    }
    throw std::runtime_error(not_finite_text(result, where));
  }

  bool statistics_are_due() const {
    const int64_t every = job.metrics.gradient_statistics_every;
    return every > 0 && (next_step() + 1) % every == 0;
  }

  void add_statistics(StepResult& result) {
    std::vector<double> numbers = gradient_sync.own_sums_of_squares();
    const std::size_t layers = numbers.size() - 1;
    std::vector<int64_t> sequences;
    for (int p = 0; p < static_cast<int>(plan.pipelines.size()); ++p) {
      const std::vector<double>& own = gradient_sync.own_unreduced_squares();
      if (p == slot.pipeline) numbers.insert(numbers.end(), own.begin(), own.end());
      for (const int64_t part : summed_sequences(plan, p)) sequences.push_back(part);
      numbers.resize(layers + 1 + sequences.size());
    }
    world->all_reduce(numbers.data(), numbers.size(), ElementType::f64, ReduceOp::sum);
    const auto of_layers = numbers.begin() + static_cast<std::ptrdiff_t>(layers);
    result.noise = gradient_noise({of_layers + 1, numbers.end()}, sequences,
                                  std::accumulate(numbers.begin(), of_layers, 0.0));
    if (has_context_parallelism(plan)) result.noise.reset();  // a rank has a part of its pipeline's gradient
    numbers[0] += *of_layers;
    for (std::size_t layer = 0; layer < layers; ++layer)
      result.layer_norms.push_back(std::sqrt(numbers[layer]));
  }

  void check_replicas(StepResult& result) {
    const auto state = replicated_state(stage.trained(), *optimizer, shards_optimizer(plan.zero));
    const ReplicaReport report = replica_check->run(state, job.training.replicas.on_divergence);
    result.diverged = report.lines;
    if (report.ends_job) throw std::runtime_error(divergence_text(result));
  }

  // As torch.nn.utils.clip_grad_norm_.
  double clipping_factor(double norm) const {
    return job.training.clip_grad_norm ? std::min(1.0, *job.training.clip_grad_norm / (norm + 1e-6)) : 1.0;
  }

  // The directions of all ranks depend on those of others, as summed gradients do: the step is committed when
  // every rank has its own.
  template <class Timed>
  void orthogonalize(const StepResult& result, const Timed& as_update) {
    if (!result.skipped) {
      as_update([&] {
        on.device.order(on.device.copies(), on.device.compute());
        muon->start(clipping_factor(result.grad_norm));
        orthogonalization->run();
      });
      settle();
    }
    progress.gradients_are_ready();
    recorder.timed(TaskKind::sync, -1, [&] { world->barrier(); });
  }

  StepResult step(bool stop) {
    const auto begin = Clock::now();
    if (pacer) pacer->iteration_begins();
    recorder.begin(std::exchange(trace_next_step, false));
    StepResult result;
    result.step = next_step();
    result.tokens = job.training.global_batch * job.model.sequence;
    result.learning_rate = learning_rate(job.training, next_step());
    if (loss_scaler) result.loss_scale = loss_scaler->scale();
    progress.step_begins();
    Clock::duration early{};  // work of the update that is done before it
    const auto do_early = [&](const auto& work) {
      const auto start = Clock::now();
      recorder.timed(TaskKind::update, -1, work);
      early += Clock::now() - start;
    };
    const PipelineWork work = training_work();
    if (!std::exchange(warm, true)) {
      gradient_sync.begin_warm_up(work.loss_scale);
      executor.warm_up(work, [this](int layer) { gradient_sync.layer_warmed_up(layer); });
    }
    const bool statistics = statistics_are_due();
    do_early([&] { gradient_sync.begin_iteration(work.loss_scale, statistics); });
    const PipelineResult run = executor.run(work);
    result.max_in_flight = run.max_in_flight;

    recorder.timed(TaskKind::sync, -1, [&] { gradient_sync.finish(); });
    double own_loss = 0;
    double numbers[5] = {0, 0, std::accumulate(digests.begin(), digests.end(), 0.0), 0, stop ? 1.0 : 0.0};
    do_early([&] {
      if (slot.tp_rank == 0) {
        const PipelineResult::Losses mean = run.mean(work.global_targets);
        own_loss = numbers[0] = mean.loss;
        numbers[3] = mean.z_loss;
      }
      numbers[1] = gradient_sync.own_sum_of_squares();
    });
    settle();
    if (!muon) progress.gradients_are_ready();
    recorder.timed(TaskKind::sync, -1,
                   [&] { world->all_reduce(numbers, 5, ElementType::f64, ReduceOp::sum); });
    result.loss = numbers[0];
    result.grad_norm = std::sqrt(numbers[1]);
    result.data_digest = static_cast<int64_t>(numbers[2]);
    result.z_loss = numbers[3];
    result.stop = numbers[4] > 0;
    const StepSums sums{result.loss, result.grad_norm};
    const Verdict verdict = this->verdict(sums);
    check_verdict(verdict, result, own_loss);
    result.skipped = verdict != Verdict::update;
    if (muon) orthogonalize(result, do_early);
    progress.committed(sums);

    recorder.timed(TaskKind::update, -1, [&] {
      const auto update_start = Clock::now() - early;
      update(sums);
      pace_update(update_start);
    });
    if (!result.skipped) recorder.timed(TaskKind::sync, -1, [&] { gradient_sync.share_values(); });
    if (replica_check && next_step() % job.training.replicas.check_every == 0)
      recorder.timed(TaskKind::sync, -1, [&] { check_replicas(result); });
    if (spike_guard) result.spikes = spike_guard->state().skipped_steps;
    if (statistics && std::isfinite(result.grad_norm)) add_statistics(result);
    recorder.finish();
    result.forward_s = recorder.total_s(TaskKind::forward);
    result.backward_s = recorder.total_s(TaskKind::backward) + recorder.total_s(TaskKind::weights);
    result.wait_s = recorder.total_s(TaskKind::wait);
    result.gradient_sync_s = recorder.total_s(TaskKind::sync);
    result.update_s = recorder.total_s(TaskKind::update);
    result.tasks = recorder.take_tasks();
    if (pacer) pacer->iteration_ends(begin);
    result.step_s = seconds_since(begin);
    return result;
  }
};

RankTrainer::RankTrainer(const JobSpec& job, const Plan& plan, int rank, CommFactory& factory,
                         const TokenData& data, Pacer* pacer, const DevicePlane* on)
    : impl_(std::make_unique<Impl>(job, plan, rank, factory, data, pacer, on)) {}
RankTrainer::~RankTrainer() = default;

StepResult RankTrainer::step(bool stop) {
  return impl_->step(stop);
}
void RankTrainer::trace_next_step() {
  impl_->trace_next_step = true;
}
double RankTrainer::evaluate(const TokenData& data, int64_t sequences) {
  return impl_->evaluate(data, sequences);
}
int64_t RankTrainer::next_step() const {
  return impl_->next_step();
}
void RankTrainer::set_next_step(int64_t step) {
  impl_->progress.starts_from({step, 0}, 0);
}
void RankTrainer::save(const std::string& directory, int keep) {
  impl_->save(directory, keep);
}
std::vector<SaveResult> RankTrainer::saves(bool wait) {
  return impl_->saves(wait);
}
LoadedCheckpoint RankTrainer::load(const std::string& directory) {
  return impl_->load(directory);
}
void RankTrainer::tell_loading(LoadProgress progress) {
  impl_->tell_loading = std::move(progress);
}
bool RankTrainer::make_room(RankTrainer* previous, CommFactory& factory, const Room& room) {
  return Impl::make_room(previous ? previous->impl_.get() : nullptr, factory, room);
}
Restored RankTrainer::restore(RankTrainer* previous, const std::string& directory, int givers) {
  return impl_->restore(previous ? previous->impl_.get() : nullptr, directory, givers);
}
void RankTrainer::give(RankTrainer* previous, const JobSpec& job, CommFactory& factory) {
  Impl::give(previous ? previous->impl_.get() : nullptr, job, factory);
}
void RankTrainer::export_to(const std::string& directory) {
  impl_->export_to(directory);
}
std::vector<Parameter*> RankTrainer::parameters() {
  return impl_->stage.parameters();
}
Optimizer& RankTrainer::optimizer() {
  return *impl_->optimizer;
}
int64_t RankTrainer::gradient_bytes() const {
  return impl_->gradient_sync.gradient_bytes();
}

}  // namespace sailor
