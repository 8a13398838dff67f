// Random planning problems of realistic size, on which the native search is judged.
//
// A problem has a GPT-2-like (tied) or Llama-like (untied) model that the cluster can hold, 125 M to 70 B
// parameters; a global batch of 64 to 2,048 sequences; some GPU types of a catalog in some zones of one
// region or of several; nodes mostly of eight GPUs, in some problems partly in use; and links between nodes
// of 25 Gbit/s to 8 x 400 Gbit/s a node, slower between zones. Layer times and links inside a node are what
// the planner estimates from the catalog. All draws are of integers, so a problem depends on its seed, its
// number, the limits and the catalog, and on no machine or library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/profile/network_file.h"
#include "tests/bench/reference_data.h"

namespace sailor::bench {

// Maxima: a problem has up to so many.
struct ProblemLimits {
  int gpus = 1024;  // free ones; at least 8
  int types = 3;
  int zones = 2;
};

struct RandomProblem {
  Inputs inputs;
  std::string job_yaml;  // what inputs.job was read from
  NetworkFile network;   // the links between nodes, as inputs.profiles.network has them

  int gpus() const;                        // free ones
  std::vector<std::string> types() const;  // of free GPUs, ascending
  std::vector<std::string> zones() const;  // likewise
};

// Throws InputError when the catalog has no type whose times can be estimated.
RandomProblem random_problem(const Catalog& catalog, uint64_t seed, int number, const ProblemLimits& limits);

// Writes job.yaml, cluster.yaml, sailor.yaml (the site) and profiles/network.json, so that
// `SAILOR_CONFIG=DIR/sailor.yaml sailor plan DIR/job.yaml --cluster DIR/cluster.yaml` plans this problem.
void dump_problem(const RandomProblem& problem, const std::string& directory);

}  // namespace sailor::bench
