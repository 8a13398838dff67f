// How a program of one verb (sailor-run, sailor-profile, ...) parses its command line and exits: bad usage
// and bad input are one line on stderr and exit code 2, any other error is one line and 1. Callbacks of
// options may throw InputError.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "planner/spec/error.h"
#include "planner/spec/quantity.h"
#include "planner/spec/text.h"

namespace sailor::cli {

// The value of an option must be a number from `least` to `most`. Like CLI::Range, whose message differs from
// release to release.
inline CLI::Validator within(double least, double most) {
  const auto check = [=](const std::string& text) {
    const std::optional<double> value = parse_number(text);
    if (value && *value >= least && *value <= most) return std::string();
    return fmt::format("must be a number from {} to {}, is {}", least, most, in_quotes(text));
  };
  return {check, fmt::format("from {} to {}", least, most)};
}

// What is wrong with a command line, in one line and in the same words with all releases of CLI11.
inline std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr) return one_line(error.what());
  const std::vector<std::string> left = app.remaining(true);
  return fmt::format("The following {} not expected: {}",
                     left.size() == 1 ? "argument was" : "arguments were", fmt::join(left, " "));
}

// `run()` returns the exit code. `app` has the name that the user typed, `sailor VERB`.
template <class Run>
int run_program(CLI::App& app, int argc, char** argv, Run run) {
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    std::cerr << "sailor: " << usage_error(app, e) << " (see `" << app.get_name() << " --help`)\n";
    return kBadInput;
  } catch (const InputError& e) {
    std::cerr << "sailor: " << e.what() << '\n';
    return kBadInput;
  } catch (const std::exception& e) {
    std::cerr << "sailor: " << e.what() << '\n';
    return kFailed;
  }
}

}  // namespace sailor::cli
