// The directory of a job's checkpoints:
//
//     step-50/           complete: manifest.json, DONE, rank-00000.safetensors, ...
//     step-60.tmp/       being written, or left behind by a job that ended meanwhile
//
// DONE is written last and holds the checksum of manifest.json, which holds those of everything else; then
// the folder gets its name, all of it synced to the disk. What lacks a part is never loaded. One job writes
// at a time. Needs no libtorch. Functions throw std::runtime_error naming path and reason when the file
// system fails.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/checkpoint_manifest.h"

namespace sailor {

// The folders named step-N in `directory`, newest first; none when there is no such directory.
std::vector<std::string> list_checkpoints(const std::string& directory);

// Reads a checkpoint's manifest and checks that everything is there with the right size, but not the
// contents of the files. Throws CheckpointDamaged.
CheckpointManifest open_checkpoint(const std::string& path);

// `skipped step-N: ...`
std::string skipped_line(const std::string& path, const std::string& damage);

struct FoundCheckpoint {
  std::string path;
  CheckpointManifest manifest;
};
// The newest one that open_checkpoint() accepts; of each newer one a line is added to `skipped`.
std::optional<FoundCheckpoint> newest_checkpoint(const std::string& directory,
                                                 std::vector<std::string>& skipped);

// Makes the folder that checkpoint `step` is written into, empty, and returns its path; removes what
// unfinished ones left.
std::string begin_checkpoint(const std::string& directory, int64_t step);
// Throws when the file system of `directory` has no room for `bytes` more.
void require_space(const std::string& directory, int64_t bytes);
// All files are written and synced: completes the folder of begin_checkpoint() and returns its final path. An
// older one of the same step is replaced.
std::string commit_checkpoint(const std::string& directory, const CheckpointManifest& manifest);
// Keeps the newest `keep` complete ones up to the step that was just written, and removes what is older. What
// is newer than that step was found damaged, and stays for people to look at. Returns what was removed.
std::vector<std::string> prune_checkpoints(const std::string& directory, int64_t step, int keep);

}  // namespace sailor
