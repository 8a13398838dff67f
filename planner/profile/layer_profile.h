// What one model costs on one GPU type, layer by layer, as measured by `sailor profile`: times by
// (microbatch, TP degree), sizes by TP degree. A cell that was not measured is absent, never zero. Value
// types; immutable after loading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "planner/profile/measured_with.h"
#include "planner/spec/job_spec.h"

namespace sailor {

// One microbatch through one layer on one TP group (TP collectives included).
struct LayerTimes {
  double forward_s = 0;
  double backward_s = 0;
  double update_s = 0;     // optimizer step of this layer
  double attention_s = 0;  // of forward_s: what selective recomputation computes again; 0 = not known
};

// What a stage computes again in the backward instead of keeping it: nothing, the inside of attention, whole
// layers from their inputs.
enum class Recompute { none, selective, full };
Recompute parse_recompute(const std::string& text);  // of a plan's stage; throws InputError
const char* to_string(Recompute recompute);

// Per GPU of the TP group; activations for one sequence.
struct LayerSizes {
  int64_t parameters = 0;        // elements held by one GPU
  int64_t output_elements = 0;   // tensor handed to the next layer, one sequence, not divided by tp
  int64_t activation_bytes = 0;  // kept for the backward of one sequence
  int64_t workspace_bytes = 0;   // live only while the layer computes one sequence (logits, scores)
  int64_t selective_bytes = 0;   // kept when attention's inside is recomputed; 0 = not known
  int64_t checkpoint_bytes = 0;  // kept when the whole layer is recomputed; 0 = not known
  int64_t tied_parameters = 0;   // of `parameters`: shared with the first layer where one rank holds both
  int64_t persistent_bytes = 0;  // a buffer that stays from one microbatch to the next

  // Kept for the backward under a plan's `recompute`; the most, where less is not known.
  int64_t kept_bytes(Recompute recompute) const {
    const int64_t less = recompute == Recompute::full        ? checkpoint_bytes
                         : recompute == Recompute::selective ? selective_bytes
                                                             : 0;
    return less > 0 ? less : activation_bytes;
  }
};

// What the platform adds, measured or calibrated, never a constant in code.
struct PlatformOverheads {
  int64_t base_memory_bytes = 0;    // process, libraries, context, before any tensor
  double iteration_overhead_s = 0;  // per iteration, whatever the plan
  double sync_s_per_byte = 0;   // of gradients that a rank sums: its own processor's work, beside the links
  double message_slowdown = 1;  // messages between stages against the network profile
  double sync_slowdown = 1;     // gradient sums between nodes against the network profile
  double jitter = 0;            // stages of a plan over several nodes are slower by this part
};

class LayerProfile {
 public:
  // Cells are keyed by (microbatch, tp) and hold one entry per layer of the model (num_all_layers).
  using Cell = std::vector<LayerTimes>;

  std::string gpu_type;
  std::string file;  // for explanations
  std::map<std::pair<int, int>, Cell> cells;
  PlatformOverheads overheads;
  MeasuredWith measured;
  double uncertainty = 0;  // relative; above 0 the times are estimates (estimated_profile.h)

  bool is_estimated() const { return uncertainty > 0; }
  const Cell* find(int microbatch, int tp) const {
    auto it = cells.find({microbatch, tp});
    return it == cells.end() ? nullptr : &it->second;
  }
  std::vector<int> microbatches() const;  // ascending, each once
  std::vector<int> tps() const;           // ascending, each once
};

// More sequences never take less time: a cell that says so measured something else beside them (small cases
// are launch-bound, and hooks cost most there). Lowers every time to the least that was measured for as many
// sequences or more, at the same TP degree.
void make_monotone(LayerProfile& profile);

// Sizes do not depend on the GPU type.
struct ModelSizes {
  std::map<int, std::vector<LayerSizes>> by_tp;  // [tp][layer]

  const std::vector<LayerSizes>* find(int tp) const {
    auto it = by_tp.find(tp);
    return it == by_tp.end() ? nullptr : &it->second;
  }
};

// The product's own file (JSON, `"sailor_layer_profile": 1`): one entry per layer kind, so that one profile
// serves any number of blocks. What a file holds before it is unrolled over a job's layers.
enum class LayerKind { embedding, block, head };

struct ProfileFile {
  std::string file;
  std::string gpu_type;
  ModelSpec model;  // `layers` is not compared: blocks repeat
  Precision precision = Precision::fp32;
  MeasuredWith measured;
  PlatformOverheads overheads;
  // Measurements behind each overhead; 0 = not said.
  struct OverheadSamples {
    int base_memory = 0, iteration = 0, sync = 0;
  } overhead_samples;
  struct TimeCell {
    int microbatch, tp;
    LayerKind kind;
    LayerTimes times;
    int samples = 1;            // measurements behind it
    int outliers = 0;           // of them, left out: interrupted
    double relative_error = 0;  // half width of the 95 % interval of forward + backward; 0 = not said
  };
  std::vector<TimeCell> times;
  struct SizeCell {
    int tp;
    LayerKind kind;
    LayerSizes sizes;
    int samples = 1;
  };
  std::vector<SizeCell> sizes;
};

ProfileFile load_profile_file(const std::string& path);
ProfileFile parse_profile_file(const std::string& json, const std::string& file_name);
std::string to_json(const ProfileFile& profile);
// Writes through a temporary file and rename: never half-written. Throws std::runtime_error.
void save_profile_file(const ProfileFile& profile, const std::string& path);

// Is this profile for that model and precision (everything but the number of blocks equal)?
bool matches(const ProfileFile& profile, const ModelSpec& model, Precision precision);
LayerProfile unroll(const ProfileFile& profile, int blocks);
ModelSizes unroll_sizes(const ProfileFile& profile, int blocks);

}  // namespace sailor
