// A short training of three ranks that writes all the files of a run below one directory, recorded or not.
#pragma once

#include <cstdint>
#include <string>

namespace sailor::power_cut {

inline constexpr int64_t kSteps = 6, kFirstSteps = 3;

struct TrainingRun {
  std::string inputs;       // a directory for what the runs read
  std::string run_program;  // sailor-run

  // Writes the inputs.
  void prepare() const;
  // Trains up to step `steps` with the files in `directory`: run/ and saved/. Returns the exit code. With
  // `recording` changes are recorded, and the program's output too.
  int train(const std::string& directory, int64_t steps, const std::string& recording) const;
};

}  // namespace sailor::power_cut
