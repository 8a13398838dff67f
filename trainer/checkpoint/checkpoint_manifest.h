// The index of a checkpoint: manifest.json. It describes the training state as unsharded tensors, without
// padding, each as a flat array, and where ranges of elements are stored. Nothing in it depends on the plan
// that wrote it, so any plan can load it. Needs no libtorch. Plain value types.
//
// The tensors are the parameters that are trained, by name (`3.qkv.weight`), in the precision in which they
// are updated (for bf16 the fp32 master weights), and the optimizer states after a slash (`3.qkv.weight/m`).
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/spec/error.h"
#include "planner/spec/job_spec.h"
#include "trainer/optim/loss_scaler.h"
#include "trainer/optim/spike_guard.h"

namespace sailor {

// A checkpoint that is incomplete or corrupted. The text names the file, on one line.
class CheckpointDamaged : public std::runtime_error {
 public:
  // Any text: names from a damaged file become as legible as those of an InputError.
  explicit CheckpointDamaged(const std::string& text) : std::runtime_error(InputError(text).what()) {}
};

// Elements [first, first + count) of a tensor, from byte `byte` of the file on.
struct CheckpointPiece {
  std::size_t tensor = 0;  // index in CheckpointManifest::tensors
  int64_t first = 0;
  int64_t count = 0;
  int64_t byte = 0;
};

struct CheckpointFile {
  std::string name;  // within the checkpoint
  int64_t bytes = 0;
  std::string checksums;  // block_checksums.h
  std::vector<CheckpointPiece> pieces;
};

struct CheckpointTensor {
  std::string name;
  std::string dtype;  // F32 | F64
  std::vector<int64_t> shape;

  int64_t elements() const;
};

struct CheckpointManifest {
  int64_t step = 0;             // finished iterations: the index of the next one
  int64_t optimizer_steps = 0;  // number of updates
  LossScaleState loss_scale;    // in the file if the loss was scaled
  SpikeState spikes;            // in the file if the job skips spikes
  ModelSpec model;
  std::optional<LoraSpec> lora;  // then the tensors are adapters, and `model.from` is their base model
  Precision precision = Precision::fp32;
  std::string optimizer;  // name
  // Together with the step, these give the position in the data.
  uint64_t seed = 0;
  int64_t global_batch = 0;
  std::string plan;  // the plan that wrote it, as text
  std::vector<CheckpointTensor> tensors;
  std::vector<CheckpointFile> files;

  int64_t bytes() const;  // of all files
};

std::string to_json(const CheckpointManifest& manifest);
// Throws CheckpointDamaged unless every element of every tensor is in exactly one place. `path` is for the
// message.
CheckpointManifest parse_manifest(const std::string& json, const std::string& path);
// The same check; returns the error text, or nothing.
std::string incomplete(const CheckpointManifest& manifest);

// Throws InputError when the job cannot resume from the checkpoint at `path`, with the key and both values.
// Plan, precision, learning rate and number of steps may differ.
void require_fit(const CheckpointManifest& manifest, const std::string& path, const JobSpec& job);

}  // namespace sailor
