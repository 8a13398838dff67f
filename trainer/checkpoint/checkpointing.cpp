#include "trainer/checkpoint/checkpointing.h"

#include <fmt/format.h>

#include <atomic>
#include <optional>
#include <stdexcept>

#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/checkpoint/work_on_all_ranks.h"

namespace sailor {
namespace {

// Rank 0 gets the texts of all ranks, in their order.
std::vector<std::string> gather_texts(Communicator& world, const std::string& text) {
  std::vector<std::string> texts;
  for (int rank = 0; rank < world.size(); ++rank) {
    if (rank == 0) {
      if (world.rank() == 0) texts.push_back(text);
      continue;
    }
    auto bytes = static_cast<int64_t>(text.size());
    if (world.rank() == rank) {
      world.send(&bytes, 1, ElementType::i64, 0)->wait();
      if (bytes > 0) world.send(text.data(), text.size(), ElementType::u8, 0)->wait();
    } else if (world.rank() == 0) {
      world.recv(&bytes, 1, ElementType::i64, rank)->wait();
      texts.emplace_back(static_cast<std::size_t>(bytes), '\0');
      if (bytes > 0) world.recv(texts.back().data(), texts.back().size(), ElementType::u8, rank)->wait();
    }
  }
  return texts;
}

// On rank 0, of what all ranks have written.
CheckpointManifest make_manifest(const JobSpec& job, const std::string& plan, const StateSnapshot& snapshot,
                                 const std::vector<std::string>& shards) {
  CheckpointManifest manifest;
  manifest.step = snapshot.version().steps_done;
  manifest.optimizer_steps = snapshot.optimizer_steps();
  manifest.loss_scale = snapshot.loss_scale();
  manifest.spikes = snapshot.spikes();
  manifest.model = job.model;
  manifest.lora = job.training.lora;
  manifest.precision = job.training.precision;
  manifest.optimizer = job.training.optimizer.name;
  manifest.seed = job.training.seed;
  manifest.global_batch = job.training.global_batch;
  manifest.plan = plan;
  manifest.tensors = checkpoint_tensors(job);
  std::map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) index[manifest.tensors[i].name] = i;
  for (const std::string& text : shards) {
    if (text.empty()) continue;
    WrittenShard shard = parse_shard(text);
    for (std::size_t i = 0; i < shard.contents.size(); ++i)
      shard.file.pieces[i].tensor = index.at(shard.contents[i].tensor);
    manifest.files.push_back(std::move(shard.file));
  }
  return manifest;
}

}  // namespace

SavedCheckpoint save_checkpoint(Communicator& world, const JobSpec& job, const Plan& plan,
                                const std::shared_ptr<const StateSnapshot>& snapshot,
                                const std::string& directory, int keep) {
  // What the work of this rank uses: it may outlive the call.
  struct Saving {
    JobSpec job;
    std::string plan, directory;
    int keep = 0;
    std::shared_ptr<const StateSnapshot> snapshot;
    std::string folder, shard;
    std::vector<std::string> shards;
    SavedCheckpoint saved;
    std::atomic<bool> stop = false;
  };
  const auto saving = std::make_shared<Saving>();
  saving->job = job;
  saving->plan = summary(plan);
  saving->directory = directory;
  saving->keep = keep;
  saving->snapshot = snapshot;
  const StopFlag stop(saving, &saving->stop);
  const int rank = world.rank();
  const int64_t step = snapshot->version().steps_done;
  require(on_all_ranks(
      world,
      [saving, rank, step] {
        if (rank != 0) return;
        saving->folder = begin_checkpoint(saving->directory, step);
        int64_t bytes = 0;
        for (const CheckpointTensor& tensor : checkpoint_tensors(saving->job))
          bytes += tensor.elements() * stored_element_bytes(tensor.dtype);
        require_space(saving->directory, bytes);
      },
      stop));
  saving->folder = broadcast_text(world, saving->folder, 0);
  require(on_all_ranks(
      world,
      [saving, rank] {
        if (saving->snapshot->pieces().empty()) return;
        saving->shard = to_text(write_shard(saving->folder, fmt::format("rank-{:05}.safetensors", rank),
                                            saving->snapshot->pieces(), &saving->stop));
      },
      stop));
  saving->shards = gather_texts(world, saving->shard);
  require(on_all_ranks(
      world,
      [saving, rank, step] {
        if (rank != 0) return;
        const CheckpointManifest manifest =
            make_manifest(saving->job, saving->plan, *saving->snapshot, saving->shards);
        saving->saved.path = commit_checkpoint(saving->directory, manifest);
        saving->saved.bytes = manifest.bytes();
        prune_checkpoints(saving->directory, step, saving->keep);
      },
      stop));
  SavedCheckpoint saved = saving->saved;
  saved.path = broadcast_text(world, saved.path, 0);
  world.broadcast(&saved.bytes, 1, ElementType::i64, 0);
  return saved;
}

LoadedCheckpoint load_checkpoint(Communicator& world, const RankState& state, const std::string& directory,
                                 const LoadProgress& progress) {
  LoadedCheckpoint loaded;
  std::vector<std::string> candidates;  // on rank 0
  require(on_all_ranks(world, [&] {
    if (world.rank() == 0) candidates = list_checkpoints(directory);
  }));
  bool touched = false;
  for (std::size_t next = 0;; ++next) {
    // Rank 0 looks for the next one that has all its parts, and tells the others what is in it.
    std::string path, text;
    std::optional<CheckpointManifest> manifest;
    require(on_all_ranks(world, [&] {
      for (; world.rank() == 0 && next < candidates.size() && !manifest; ++next) {
        path = candidates[next];
        try {
          manifest = open_checkpoint(path);
          text = to_json(*manifest);
        } catch (const CheckpointDamaged& damage) {
          loaded.skipped.push_back(skipped_line(path, damage.what()));
        }
      }
    }));
    if (manifest) --next;
    path = broadcast_text(world, manifest ? path : "", 0);
    if (path.empty()) break;
    text = broadcast_text(world, text, 0);
    CheckpointReader reader(path, parse_manifest(text, path));
    const WorkProgress reading{[&](int64_t done, int64_t total) {
                                 if (progress) progress(done, total);
                               },
                               [&] { return std::pair(reader.bytes_delivered(), reader.bytes_announced()); }};
    const Outcome outcome = on_all_ranks(
        world,
        [&] {
          require_fit(reader.manifest(), path, state.job);
          touched = true;
          read_state(reader, state);
          loaded.steps_done = reader.manifest().step;
        },
        nullptr, &reading);
    if (outcome.failure == Outcome::Failure::none) {
      loaded.path = path;
      break;
    }
    if (outcome.failure != Outcome::Failure::damaged) require(outcome);
    loaded.skipped.push_back(skipped_line(path, outcome.text));
  }
  if (loaded.path.empty() && touched)
    throw std::runtime_error(
        fmt::format("no checkpoint in {} is complete: {}; move them away to train from the "
                    "beginning",
                    directory, loaded.skipped.back()));
  return loaded;
}

}  // namespace sailor
