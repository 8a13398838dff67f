// Writes a problem as files that `sailor plan` and other tools read, to inspect a failing row.
//
//     DIR/job.yaml, snapshot.yaml, catalog.yaml, sailor.yaml (site config)
//     DIR/profiles/*.json                    layer and network profiles in the product's formats, or
//     DIR/reference/profiles, network, ...   in the reference data's formats, where the product's cannot hold
//                                            them (fitted links, blocks that differ)
//     DIR/PLAN-optimum.json, PLAN-ours.json  of every row that fails
#pragma once

#include <string>
#include <vector>

#include "tests/oracle/check.h"
#include "tests/oracle/problem.h"

namespace sailor::oracle {

// Creates the directory. Throws std::runtime_error when a file cannot be written.
void dump_problem(const Problem& problem, const std::string& directory);
void dump_plans(const Problem& problem, const std::vector<Row>& rows, const std::string& directory);

}  // namespace sailor::oracle
