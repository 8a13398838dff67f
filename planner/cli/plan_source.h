// From what the command line says to what search() takes; one path for all verbs that search.
#pragma once

#include "planner/cli/commands.h"
#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"

namespace sailor::cli {

// Throw InputError on a file or a value that is wrong; words of the command line are checked before any file.
PlanningInputs read_inputs(const PlanSource& source);
SearchRequest request_of(const PlanSource& source);
// Prints notes about the inputs on standard error.
void print_notes(const PlanningInputs& inputs);
// The exit code of a search; says on standard error what is wrong when it found nothing.
int exit_code(const PlanSource& source, SearchStatus status, const std::string& reason);

}  // namespace sailor::cli
