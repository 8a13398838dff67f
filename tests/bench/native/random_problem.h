// Random planning problems of realistic size, to test the native search.
//
// A problem has a GPT-2-like (tied) or Llama-like (untied) model that fits the cluster, with 125 M to 70 B
// parameters; a global batch of 64 to 2,048 sequences; some GPU types of a catalog in some zones of one
// region or several; nodes mostly of eight GPUs, in some problems partly in use; and links between nodes of
// 25 Gbit/s to 8 x 400 Gbit/s per node, slower between zones. Layer times and links inside a node are the
// planner's estimates from the catalog. All draws are integers, so a problem only depends on its seed, its
// number, the limits and the catalog, not on machine or library.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/profile/network_file.h"
#include "tests/bench/reference_data.h"

namespace sailor::bench {

// Maxima of a problem.
struct ProblemLimits {
  int gpus = 1024;  // free ones; at least 8
  int types = 3;
  int zones = 2;
  bool drawn_links = true;  // false: those between nodes are as the catalog assumes, of the types' own cards
};

struct RandomProblem {
  Inputs inputs;
  std::string job_yaml;  // the text that inputs.job was read from
  NetworkFile network;   // the drawn links between nodes, which inputs.profiles.network has too

  int gpus() const;                        // free ones
  std::vector<std::string> types() const;  // of free GPUs, ascending
  std::vector<std::string> zones() const;  // likewise
};

// Throws InputError when the catalog has no type with estimable times.
RandomProblem random_problem(const Catalog& catalog, uint64_t seed, int number, const ProblemLimits& limits);

// Writes job.yaml, cluster.yaml, sailor.yaml (the site) and profiles/network.json, so that
// `SAILOR_CONFIG=DIR/sailor.yaml sailor plan DIR/job.yaml --cluster DIR/cluster.yaml` plans this problem.
void dump_problem(const RandomProblem& problem, const std::string& directory);

}  // namespace sailor::bench
