#include "planner/spec/trainer_spec.h"

#include <array>
#include <limits>

#include "planner/spec/text.h"
#include "planner/spec/trainer_kinds.h"  // made by CMake from etc/frameworks

namespace sailor {

TrainerSpec read_trainer(const Field& field) {
  MapField map(field, {"kind", "framework", "command", "signal", "grace", "restarts", "hang_timeout"});
  TrainerSpec trainer;
  const Field kind = map.required("kind");
  trainer.kind = kind.name();
  if (auto framework = map.optional("framework")) trainer.framework = framework->text();
  if (trainer.framework.empty() && !trainer_kinds().contains(trainer.kind)) {
    const std::vector<std::string> kinds = trainer_kind_names();
    kind.fail("must be " + alternatives(kinds) + ", is " + in_quotes(trainer.kind) +
              did_you_mean(trainer.kind, kinds) +
              "; another framework needs its description, `framework: FILE`");
  }
  const Field command = map.required("command");
  if (!command.is_sequence()) command.fail_type("a list of the program and its arguments");
  for (const Field& word : command.items()) trainer.command.push_back(word.text_or_empty());
  if (trainer.command.empty() || trainer.command.front().empty()) command.fail("names no program");
  if (auto signal = map.optional("signal"))
    trainer.signal =
        std::array{SIGTERM, SIGINT, SIGUSR1, SIGUSR2}[signal->choice({"TERM", "INT", "USR1", "USR2"})];
  if (auto grace = map.optional("grace")) {
    trainer.grace_s = grace->duration_s();
    if (trainer.grace_s < 1 || trainer.grace_s > 3600) grace->fail("must be between 1s and 1h");
  }
  if (auto restarts = map.optional("restarts")) trainer.restarts = restarts->integer<int>(0, 1000);
  if (auto timeout = map.optional("hang_timeout")) {
    const bool never = timeout->text() == "never";
    trainer.hang_timeout_s = never ? std::numeric_limits<double>::infinity() : timeout->duration_s();
    if (trainer.hang_timeout_s < 1) timeout->fail("must be at least 1s, or never");
  }
  return trainer;
}

const std::map<std::string, std::string>& trainer_kinds() {
  static const std::map<std::string, std::string> kinds(std::begin(kTrainerKinds), std::end(kTrainerKinds));
  return kinds;
}

std::vector<std::string> trainer_kind_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : trainer_kinds()) names.push_back(name);
  return names;
}

}  // namespace sailor
