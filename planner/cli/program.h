// How a program of one verb (sailor-run, sailor-profile, ...) parses its command line and exits: bad usage
// and bad input are one line on stderr and exit code 2, any other error is one line and 1. Callbacks of
// options may throw InputError.
#pragma once

#include <CLI/CLI.hpp>
#include <iostream>

#include "planner/spec/error.h"

namespace sailor::cli {

// `run()` returns the exit code. `app` has the name that the user typed, `sailor VERB`.
template <class Run>
int run_program(CLI::App& app, int argc, char** argv, Run run) {
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    std::cerr << "sailor: " << e.what() << " (see `" << app.get_name() << " --help`)\n";
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
