// From the command line to the inputs of search(); shared by all verbs that search.
#pragma once

#include "planner/cli/commands.h"
#include "planner/inputs/load_inputs.h"
#include "planner/inputs/search_request.h"

namespace sailor::cli {

// Throws InputError for an invalid file or value; words of the command line are checked before any file.
PlanningInputs read_inputs(const PlanSource& source);
SearchRequest request_of(const PlanSource& source);
// Prints notes about the inputs on standard error.
void print_notes(const PlanningInputs& inputs);
// The exit code of a search; prints the reason to standard error if no plan was found.
int exit_code(const PlanSource& source, SearchStatus status, const std::string& reason);

}  // namespace sailor::cli
