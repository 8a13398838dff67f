// The cost of a model on a GPU type by layer, as measured by `sailor profile`: times by (microbatch, TP
// degree), sizes by TP degree. A cell without measurements is absent, never zero. Value types; immutable
// after loading.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "planner/profile/measured_with.h"
#include "planner/spec/job_spec.h"
#include "planner/spec/model_key.h"
#include "planner/spec/recompute.h"
#include "planner/spec/replica_shape.h"

namespace sailor {

// One microbatch through one layer on one TP group (TP collectives included).
struct LayerTimes {
  double forward_s = 0;
  double backward_s = 0;
  double update_s = 0;     // optimizer step of this layer
  double attention_s = 0;  // part of forward_s that selective recomputation repeats; 0 = unknown
  // What a backward takes longer with light recomputation, and with that of the MLP; for sizes that are
  // known.
  double light_s = 0, mlp_s = 0;
  // Of a block's backward_s: the gradients of weights, which a split backward computes later; 0 = unknown.
  double weight_s = 0;
  // Of a block: what its input's way to the memory of the node and back adds to what `full` takes.
  double host_s = 0;

  // What a backward takes longer under a plan's `recompute`.
  double again_s(Recompute recompute) const {
    switch (recompute) {
      case Recompute::none:
        return 0;
      case Recompute::selective:
        return attention_s;
      case Recompute::light:
        return light_s;
      case Recompute::mlp:
        return mlp_s;
      case Recompute::full:
        return forward_s;
      case Recompute::offload:
        break;
    }
    return forward_s + host_s;
  }
};

// What is measured of a layer.
inline constexpr double LayerTimes::*kMeasuredTimes[] = {&LayerTimes::forward_s, &LayerTimes::backward_s,
                                                         &LayerTimes::update_s,  &LayerTimes::light_s,
                                                         &LayerTimes::mlp_s,     &LayerTimes::weight_s};

// Per GPU of the TP group; activations for one sequence.
struct LayerSizes {
  int64_t parameters = 0;       // elements held by one GPU that are trained
  int64_t output_elements = 0;  // tensor passed to the next layer, one sequence, not divided by the TP degree
  int64_t activation_bytes = 0;  // stored for the backward of one sequence
  int64_t workspace_bytes = 0;   // only while the layer computes one sequence (logits, scores)
  // Stored with recomputation; 0 = unknown.
  int64_t selective_bytes = 0, light_bytes = 0, mlp_bytes = 0;
  int64_t checkpoint_bytes = 0;        // with that of the whole layer
  int64_t pending_bytes = 0;           // of a block between the parts of its split backward; 0 = unknown
  int64_t tied_parameters = 0;         // of `parameters`: shared with the first layer if one rank has both
  int64_t persistent_bytes = 0;        // a buffer that stays allocated between microbatches
  int64_t frozen_parameters = 0;       // held, too, and not trained
  int64_t tied_frozen_parameters = 0;  // of these: shared with the first layer if one rank has both

  // Stored on the GPU for the backward under a plan's `recompute`; the value without recomputation if it is
  // unknown.
  int64_t kept_bytes(Recompute recompute) const {
    const int64_t by_level[kRecomputeLevels] = {activation_bytes, selective_bytes,  light_bytes,
                                                mlp_bytes,        checkpoint_bytes, checkpoint_bytes};
    const int64_t kept = by_level[static_cast<int>(recompute)];
    if (kept <= 0) return activation_bytes;
    return recompute == Recompute::offload ? 0 : kept;
  }
  bool operator==(const LayerSizes&) const = default;
};

// Overheads of a platform, measured or calibrated, never constants in code.
struct PlatformOverheads {
  int64_t base_memory_bytes = 0;    // process, libraries, context, before any tensor
  double iteration_overhead_s = 0;  // per iteration, independent of the plan
  // processor time per byte of gradients that a rank reduces, in addition to the links
  double sync_s_per_byte = 0;
  double message_slowdown = 1;  // factor on messages between stages, relative to the network profile
  double sync_slowdown = 1;     // factor on gradient reduction between nodes, relative to the network profile
  double jitter = 0;            // relative slowdown of stages of a plan over several nodes
  double node_sync_s = 0;       // per iteration of a plan over several nodes
  double message_start_s = 0;   // per message between stages, in addition to the network profile
};

class LayerProfile {
 public:
  // Cells are keyed by (microbatch, shape) and hold one entry per layer of the model (num_all_layers).
  using Cell = std::vector<LayerTimes>;

  std::string gpu_type;
  std::string file;  // for explanations
  std::map<std::pair<int, ReplicaShape>, Cell> cells;
  PlatformOverheads overheads;
  MeasuredWith measured;
  // Cells whose times are estimates (estimated_profile.h), and their relative uncertainty; 0 without any.
  std::set<std::pair<int, ReplicaShape>> estimated;
  double uncertainty = 0;

  bool is_estimated(int microbatch, ReplicaShape shape) const {
    return estimated.contains({microbatch, shape});
  }
  // No cell was measured.
  bool is_estimated() const { return !cells.empty() && estimated.size() == cells.size(); }
  const Cell* find(int microbatch, ReplicaShape shape) const {
    auto it = cells.find({microbatch, shape});
    return it == cells.end() ? nullptr : &it->second;
  }
  std::vector<int> microbatches() const;     // ascending, each once
  std::vector<ReplicaShape> shapes() const;  // ascending, each once
};

// Sizes do not depend on the GPU type.
struct ModelSizes {
  std::map<ReplicaShape, std::vector<LayerSizes>> by_shape;  // [shape][layer]

  const std::vector<LayerSizes>* find(ReplicaShape shape) const {
    auto it = by_shape.find(shape);
    return it == by_shape.end() ? nullptr : &it->second;
  }
};

// Layers of one kind cost the same. A local block is one whose tokens attend to a window of the sequence only
// (ModelSpec::attends_locally).
enum class LayerKind { embedding, block, local_block, head };
const std::vector<std::string>& layer_kind_names();  // by LayerKind, as in files
const std::string& to_string(LayerKind kind);
// Those of a model with any number of blocks, ascending.
std::vector<LayerKind> layer_kinds(const ModelSpec& model);
LayerKind kind_of_layer(const ModelSpec& model, int layer);
// The first layer of a kind. The model may have too few blocks for it.
int layer_of_kind(const ModelSpec& model, LayerKind kind);
// The model with as many blocks as it has kinds of them, if it has fewer.
ModelSpec with_every_kind(ModelSpec model);

// The product's own file (JSON, `"sailor_layer_profile": 1`): one entry per layer kind, so that one profile
// applies to any number of blocks. This is its content before it is expanded to a job's layers. Older files
// have no entries of local blocks: those of blocks are then of both.
struct ProfileFile {
  std::string file;
  std::string gpu_type;
  ModelSpec model;  // `layers` is not compared: blocks repeat
  Precision precision = Precision::fp32;
  MeasuredWith measured;
  PlatformOverheads overheads;
  // Number of measurements of each overhead; 0 = unknown.
  struct OverheadSamples {
    int base_memory = 0, iteration = 0, sync = 0;
  } overhead_samples;
  struct TimeCell {
    int microbatch;
    ReplicaShape shape;
    LayerKind kind;
    LayerTimes times;
    int samples = 1;   // number of measurements
    int outliers = 0;  // excluded as interrupted
    // half width of the 95 % confidence interval of forward + backward; 0 = unknown
    double relative_error = 0;
  };
  std::vector<TimeCell> times;
  struct SizeCell {
    ReplicaShape shape;
    LayerKind kind;
    LayerSizes sizes;
    int samples = 1;
  };
  std::vector<SizeCell> sizes;
};

// The choices of a model on which its times and sizes depend.
const std::vector<const ModelKey*>& profiled_keys();

ProfileFile load_profile_file(const std::string& path);
ProfileFile parse_profile_file(const std::string& json, const std::string& file_name);
std::string to_json(const ProfileFile& profile);
// Atomic: writes a temporary file and renames it. Throws std::runtime_error.
void save_profile_file(const ProfileFile& profile, const std::string& path);

// Is this a profile of that model and precision (all equal but the number of blocks)?
bool matches(const ProfileFile& profile, const ModelSpec& model, Precision precision);
LayerProfile unroll(const ProfileFile& profile, int blocks);
ModelSizes unroll_sizes(const ProfileFile& profile, int blocks);

}  // namespace sailor
