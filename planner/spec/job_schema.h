// The JSON Schema of job specs (etc/doc/job.schema.json), built into the planner. Editors complete and check
// a job.yaml with it, and the key reference in etc/doc/formats.md is generated from it. Only the parser
// decides what parse_job_spec() accepts; a test compares both.
//
// Pure functions; safe from any thread.
#pragma once

#include <string>

namespace sailor {

// The text of the file.
const char* job_schema_json();

// One Markdown table with a row per key: dotted name (with `?` if optional), value, default, meaning. Ends in
// a newline.
std::string job_schema_markdown();

}  // namespace sailor
