// vTrain's measured runs: GPT on nodes of eight GPUs, activations recomputed in full.
#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::convert {

std::vector<MeasuredRun> convert_vtrain(const std::string& path) {
  Csv csv;
  load_csv(path, csv);
  std::vector<MeasuredRun> records;
  for (const CsvRow& row : csv.rows) {
    MeasuredRun record;
    record.name = std::to_string(row.where().line);
    record.where = row.where();
    record.framework = "megatron-deepspeed";
    record.platform = "vtrain";
    record.precision = Precision::bf16;
    TransformerShape& shape = record.shape;
    shape = gpt_shape(row.integer("# layers"), row.integer("hidden size"), row.integer("attention heads"),
                      row.integer("sequence length"), 51200);
    shape.tied_embeddings = true;
    UniformPlan uniform;
    uniform.model = record.model = "gpt-" + std::to_string(shape.layers) + "x" + std::to_string(shape.hidden);
    uniform.pp = row.integer("pipeline parallelism");
    uniform.dp = row.integer("data parallelism");
    uniform.tp = row.integer("tensor parallelism");
    uniform.cuts = even_cuts(shape.layers, uniform.pp);
    uniform.microbatch = row.integer("micro batch");
    uniform.global_batch = row.integer("global batch");
    uniform.gpu_type = "A100-80";
    uniform.recompute = Recompute::full;
    record.plan = uniform.plan();
    record.iteration_s.push_back(row.number("iteration time (ms)") / 1e3);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sailor::convert
