// The published cost model, written independently from the reference COST_MODEL.md, and the rules for valid
// plans. Simple and slow: the judge of single plans. Pure functions.
//
//     M      = 24 B * parameters + (P - i) * microbatch * 4 B * activations + (2e9 for tp = 1, else 3e9)
//     T      = (nmb - 1) * max_i(comp_i + comm_i) + sum_i(comp_i + comm_i) + max update + max_i sync_i
//     USD    = T * price of all GPUs + egress of activations, gradients and of the ring of replicas
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/oracle/problem.h"

namespace sailor::oracle {

struct Score {
  double iteration_s = 0;
  double usd = 0;
};

// Memory of one GPU of a stage that holds layers [first, end) and `in_flight` = P - i microbatches.
double memory_bytes(const Problem& problem, int tp, int microbatch, int first, int end, int in_flight);
// Communication of stage `stage` of `stages` for a microbatch.
double stage_comm_s(int stage, int stages, double activation_s, double gradient_s);
// Reduction of `bytes` over `replicas`, between two neighbours.
double all_reduce_s(const Curve& curve, double bytes, int replicas);

// Requires profiled cells and links (see `violation`).
Score score(const Problem& problem, const GridPlan& plan);

// Why the plan is invalid, empty if it is valid: layers, microbatches, cells that were not profiled, memory,
// GPUs that do not exist, tensor-parallel groups that fit no node, replicas of a stage in two regions.
std::string violation(const Problem& problem, const GridPlan& plan);

// Do these tensor-parallel groups (number by degree) fit into nodes with these free GPUs, no group across
// nodes? Tries every distribution over the nodes.
bool groups_fit(const std::vector<int>& free_by_node, std::map<int, int> groups_by_tp);

}  // namespace sailor::oracle
