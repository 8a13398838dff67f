// Slurm's node feature expressions, as --constraint takes them, asked of one node. Pure; knows nothing of
// libslurm.
//
//     big            rack1&big      rack1,big      rack1|rack2      (rack1|rack2)&big
//
// As in Slurm, `&` (or a comma) and `|` are of one rank and read from left to right. Forms that speak of
// several nodes at once, counts (`rack1*2`) and brackets (`[rack1|rack2]`), are refused: which node goes with
// which is the plan's business.
#pragma once

#include <string>
#include <vector>

namespace sailor {

// Does a node with these features satisfy the expression? Throws InputError when the expression is none.
bool satisfies(const std::vector<std::string>& features, const std::string& expression);

}  // namespace sailor
