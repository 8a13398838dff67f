// A training in several jobs, one after the other: when a job ends before its last step, it submits the next
// one, which continues from the newest checkpoint in the same run directory. Value types.
//
// The plugin sends a Resubmission with each job that may be continued (as SAILOR_SUBMISSION). The next
// submission finds a PreviousPart in its environment (SAILOR_CONTINUES).
#pragma once

#include <map>
#include <string>
#include <vector>

namespace sailor {

// An option of a command line, by its long name without dashes.
struct GivenOption {
  std::string name;
  std::string value{};  // empty = none
  bool operator==(const GivenOption&) const = default;
};

// What a submission said besides its script.
struct Resubmission {
  std::vector<GivenOption> options;                // those that apply to every part
  std::vector<std::string> arguments;              // of the script
  std::map<std::string, std::string> environment;  // variables that are defaults of options
};

struct PreviousPart {
  std::string job;            // its nodes are free when the next part starts
  std::string spec;           // path of the job spec that was submitted first: relative paths start there
  std::string run_directory;  // of the whole training
};

// As JSON, to send with a job. The parsers throw std::runtime_error.
std::string to_json(const Resubmission& submission);
Resubmission parse_resubmission(const std::string& json);
std::string to_json(const PreviousPart& part);
PreviousPart parse_previous_part(const std::string& json);

// The options that concern only the first part are left out: when it starts, and whether it discards earlier
// checkpoints; and those that the next submission sets itself.
std::vector<GivenOption> options_of_every_part(std::vector<GivenOption> given);

}  // namespace sailor
