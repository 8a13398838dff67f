// From what the command line says to what search() takes; one path for all verbs that search.
#pragma once

#include "planner/cli/commands.h"
#include "planner/search/load_inputs.h"
#include "planner/search/search.h"

namespace sailor::cli {

// Throw InputError on a file or a value that is wrong; words of the command line are checked before any file.
PlanningInputs read_inputs(const PlanSource& source);
// The time limit is the site's where the command line gives none.
PlanOptions options_of(const PlanSource& source, const SiteConfig& site);
// Prints notes about the inputs on standard error.
void print_notes(const PlanningInputs& inputs);
// The exit code of a search; says on standard error what is wrong when it found nothing.
int exit_code(const PlanSource& source, SearchStatus status, const std::string& reason);

}  // namespace sailor::cli
