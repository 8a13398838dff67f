// Slurm's node feature expressions, as in --constraint, evaluated for one node. Pure; independent of
// libslurm.
//
//     big            rack1&big      rack1,big      rack1|rack2      (rack1|rack2)&big
//
// As in Slurm, `&` (or a comma) and `|` have equal precedence and are read from left to right. Forms about
// several nodes, counts (`rack1*2`) and brackets (`[rack1|rack2]`), are rejected: the plan decides which
// nodes are combined.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Does a node with these features satisfy the expression? Throws InputError when the expression is invalid.
bool satisfies(const std::vector<std::string>& features, const std::string& expression);

}  // namespace sailor
