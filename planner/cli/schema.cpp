// sailor schema: what a job spec may say, for editors and for the reference.
#include "planner/cli/commands.h"
#include "planner/cli/output.h"
#include "planner/spec/error.h"
#include "planner/spec/job_schema.h"

namespace sailor::cli {

int run_schema(const SchemaCommand& command) {
  print(command.format == Format::markdown ? job_schema_markdown() : job_schema_json());
  return kDone;
}

}  // namespace sailor::cli
