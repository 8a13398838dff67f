// Layouts as text for the command line and output: pipelines separated by `/`, each a list of the TP degrees
// of its stages separated by `,`. `4,1/2` is a pipeline of two stages and one of a single stage; `2x4` is a
// stage with TP degree 2 and CP degree 4. Pure.
#pragma once

#include <string>
#include <vector>

#include "planner/spec/replica_shape.h"

namespace sailor {

using ShapeLayout = std::vector<std::vector<ReplicaShape>>;  // by pipeline and stage

// Throws InputError naming `--layout`.
ShapeLayout parse_layout(const std::string& text);
std::string to_text(const ShapeLayout& layout);

}  // namespace sailor
