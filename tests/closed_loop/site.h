// A directory with the files of a user on one machine: site config, catalog, profiles, data, and job specs.
// Programs run in it as a user would run them.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/closed_loop/layouts.h"

namespace sailor::closed_loop {

// Measurements of a training run.
struct Measured {
  double iteration_s = 0;  // median of the steps after the warm-up
  int64_t peak_bytes = 0;  // of the fullest rank
  int64_t least_peak_bytes = 0;
  double overrun_share = 0;  // fraction of the emulated time by which real computation took longer
};

class Site {
 public:
  // Creates `directory`. `emulated_ranks` is the maximum number of ranks on emulated devices in train(); 0 =
  // none is emulated.
  Site(const std::string& directory, int emulated_ranks);

  // Measures the model's layers and links with `sailor profile`, and writes the catalog. With emulation the
  // slowdowns are chosen so that the real computation of all ranks is a small part of the machine's capacity,
  // and the links so that messages are a substantial part of an iteration.
  void profile(const Model& model, double seconds);
  // Only what the plan needs, with as many concurrent ranks as it has.
  void profile(const Model& model, const Plan& plan, double seconds);
  // Trains `steps` steps under the plan with `sailor run --local`; the first three are warm-up. Throws
  // std::runtime_error when it fails.
  Measured train(const Model& model, const Plan& plan, int steps);

  std::string catalog_file() const { return directory_ + "/catalog.yaml"; }
  std::string profiles() const { return directory_ + "/profiles"; }

 private:
  std::string write_job(const Model& model, int64_t global_batch, int steps) const;
  void run_profiler(const Model& model, const std::vector<int>& microbatches, const std::vector<int>& tps,
                    int ranks, double seconds) const;
  void write_emulation(const Model& model) const;

  std::string directory_;
  double fastest_layer_s_;  // a block's forward pass of one sequence, emulated; 0 = not emulated
  int runs_ = 0;
};

}  // namespace sailor::closed_loop
