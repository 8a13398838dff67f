// Which program trains: Sailor's own trainer, or one that the job brings along. Then the plans are those that
// the program's framework can run, and its ranks are started with the environment of `torchrun`
// (trainer/launch/rank_environment.h). Plain value type.
//
//     trainer:
//       kind: torchrun                    # a framework that is built in, or any name with `framework`
//       framework: my-framework.yaml      # its description (framework_style.h), relative to the job spec
//       command: [python, train.py]
//       signal: TERM, grace: 30s, restarts: 3, hang_timeout: 30min   # of elastic jobs, but grace
#pragma once

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "planner/spec/field.h"

namespace sailor {

struct TrainerSpec {
  std::string kind;                  // empty = Sailor's own trainer
  std::string framework;             // file that describes it; empty = the built-in description of the kind
  std::vector<std::string> command;  // program and arguments of every rank
  int signal = SIGTERM;              // of an elastic job: what ranks get before a change
  double grace_s = 30;  // for so long ranks may run after they were told to end, until they are killed
  int restarts = 3;     // in a row, of a program that fails although no node is lost
  // Of an elastic job whose program tells of its steps: without one for so long it hangs. Infinite: never.
  double hang_timeout_s = 1800;

  bool own() const { return kind.empty(); }
  bool operator==(const TrainerSpec&) const = default;
};

// Throws InputError: an unknown kind without a description, an empty command, a value out of range.
TrainerSpec read_trainer(const Field& field);

// The descriptions of frameworks that are built in: text of etc/frameworks/KIND.yaml by kind.
const std::map<std::string, std::string>& trainer_kinds();
std::vector<std::string> trainer_kind_names();

}  // namespace sailor
