// The JSON Schema of job specs (etc/doc/job.schema.json), which the planner carries: editors complete and
// check a job.yaml with it, and the reference of its keys in etc/doc/formats.md is made from it. What
// parse_job_spec() accepts is decided by the parser alone; a test holds the two against each other.
//
// Pure functions; safe from any thread.
#pragma once

#include <string>

namespace sailor {

// The schema as it stands in the file.
const char* job_schema_json();

// One Markdown table, a row per key: dotted name (`?` behind it where it may be left out), value, default,
// meaning. Ends in a newline.
std::string job_schema_markdown();

}  // namespace sailor
