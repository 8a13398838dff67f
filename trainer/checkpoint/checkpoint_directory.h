// The directory of a job's checkpoints:
//
//     step-50/           complete: manifest.json, DONE, rank-00000.safetensors, ...
//     step-60.tmp/       being written, or left by a job that ended meanwhile
//     earlier-1/         checkpoints of a training before one that began anew
//
// DONE is written last and has the checksum of manifest.json, which has those of everything else; then the
// directory is renamed, and all of it is synced to disk. An incomplete checkpoint is never loaded. One job
// writes at a time. Needs no libtorch. Functions throw std::runtime_error naming path and reason when the
// file system fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_manifest.h"

namespace sailor {

// The directories named step-N in `directory`, newest first; empty if there is no such directory.
std::vector<std::string> list_checkpoints(const std::string& directory);

// Reads a checkpoint's manifest and checks that all files exist with the right size, but not their contents.
// Throws CheckpointDamaged.
CheckpointManifest open_checkpoint(const std::string& path);

// `skipped step-N: ...`
std::string skipped_line(const std::string& path, const std::string& damage);

struct FoundCheckpoint {
  std::string path;
  CheckpointManifest manifest;
};
// The newest one that open_checkpoint() accepts; adds a line to `skipped` for each newer one.
std::optional<FoundCheckpoint> newest_checkpoint(const std::string& directory,
                                                 std::vector<std::string>& skipped);

// Moves all checkpoints to a new directory earlier-N in `directory`, and returns its path; empty if there are
// none. The caller has the directory's lock (directory_lock.h).
std::string set_checkpoints_aside(const std::string& directory);

// Creates the empty directory for checkpoint `step`, and returns its path; removes unfinished ones.
std::string begin_checkpoint(const std::string& directory, int64_t step);
// Throws when the file system of `directory` has less than `bytes` of free space.
void require_space(const std::string& directory, int64_t bytes);
// After all files are written and synced: completes the directory of begin_checkpoint() and returns its final
// path. Replaces an older one of the same step.
std::string commit_checkpoint(const std::string& directory, const CheckpointManifest& manifest);
// Keeps the newest `keep` complete checkpoints up to the step that was just written, and removes older ones.
// Those newer than that step were damaged, and stay for inspection. Returns the removed ones.
std::vector<std::string> prune_checkpoints(const std::string& directory, int64_t step, int keep);

}  // namespace sailor
