// What was measured, together with estimates of what was not: a profile of a few (microbatch, TP degree)
// leaves the search as many choices as no profile. An estimate is multiplied by measured / estimated of the
// measured cells: interpolated between those that are nearest below and above, in log2 of the microbatch and
// of the TP degree, and that of the nearest one beyond them. So the times of one type are consistent, and an
// estimate is exact where it equals what was measured. Pure.
#pragma once

#include <set>

#include "planner/profile/layer_profile.h"
#include "planner/spec/framework_style.h"

namespace sailor {

// Adds the cells of `estimate` that `profile` lacks, marked as estimated. `estimate` is of the same model and
// type, and has the measured cells too; measured ones that it lacks do not count.
void complete(LayerProfile& profile, const LayerProfile& estimate);

// Adds the sizes of `shapes` that are missing, if the shape of the model's family is known.
void complete(ModelSizes& sizes, const ModelSpec& model, Precision precision, const FrameworkStyle& style,
              const std::set<ReplicaShape>& shapes);

}  // namespace sailor
