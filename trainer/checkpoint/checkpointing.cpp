#include "trainer/checkpoint/checkpointing.h"

#include <fmt/format.h>

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
CheckpointManifest make_manifest(const JobSpec& job, const Plan& plan, const StateSnapshot& snapshot,
                                 const std::vector<std::string>& shards) {
  CheckpointManifest manifest;
  manifest.step = snapshot.steps_done();
  manifest.optimizer_steps = snapshot.optimizer_steps();
  manifest.model = job.model;
  manifest.precision = job.training.precision;
  manifest.optimizer = job.training.optimizer.name;
  manifest.seed = job.training.seed;
  manifest.global_batch = job.training.global_batch;
  manifest.plan = summary(plan);
  manifest.tensors = checkpoint_tensors(job, snapshot.optimizer_states());
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
                                const StateSnapshot& snapshot, const std::string& directory, int keep) {
  std::string folder, shard;
  require(on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    folder = begin_checkpoint(directory, snapshot.steps_done());
    int64_t bytes = 0;
    for (const CheckpointTensor& tensor : checkpoint_tensors(job, snapshot.optimizer_states()))
      bytes += tensor.elements() * stored_element_bytes(tensor.dtype);
    require_space(directory, bytes);
  }));
  folder = broadcast_text(world, folder, 0);
  require(on_all_ranks(world, [&] {
    if (!snapshot.pieces().empty())
      shard = to_text(
          write_shard(folder, fmt::format("rank-{:05}.safetensors", world.rank()), snapshot.pieces()));
  }));
  const std::vector<std::string> shards = gather_texts(world, shard);
  SavedCheckpoint saved;
  require(on_all_ranks(world, [&] {
    if (world.rank() != 0) return;
    const CheckpointManifest manifest = make_manifest(job, plan, snapshot, shards);
    saved.path = commit_checkpoint(directory, manifest);
    saved.bytes = manifest.bytes();
    prune_checkpoints(directory, snapshot.steps_done(), keep);
  }));
  saved.path = broadcast_text(world, saved.path, 0);
  world.broadcast(&saved.bytes, 1, ElementType::i64, 0);
  return saved;
}

LoadedCheckpoint load_checkpoint(Communicator& world, const RankState& state, const std::string& directory) {
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
    const Outcome outcome = on_all_ranks(world, [&] {
      CheckpointReader reader(path, parse_manifest(text, path));
      require_fit(reader.manifest(), path, state.job);
      touched = true;
      read_state(reader, state);
      loaded.steps_done = reader.manifest().step;
    });
    if (outcome.failure == Outcome::Failure::none) {
      loaded.path = path;
      break;
    }
    if (outcome.failure != Outcome::Failure::damaged) require(outcome);
    loaded.skipped.push_back(skipped_line(path, outcome.text));
  }
  if (loaded.path.empty() && touched)
    throw std::runtime_error(
        fmt::format("no checkpoint in {} is whole: {}; move them away to train from the "
                    "beginning",
                    directory, loaded.skipped.back()));
  return loaded;
}

}  // namespace sailor
