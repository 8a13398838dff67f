// llm-foundry's throughput tables: MPT models under fully sharded data parallelism. Every GPU is a replica;
// sharding appears as a sharded optimizer, its traffic overlapped.
#include <map>

#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::convert {
namespace {

struct Size {
  int hidden, heads, layers;
};

const std::map<std::string, Size>& sizes() {
  static const std::map<std::string, Size> known = {
      {"125m", {768, 12, 12}}, {"350m", {1024, 16, 24}}, {"760m", {1536, 12, 24}},
      {"1b", {2048, 16, 24}},  {"3b", {2560, 20, 32}},   {"7b", {4096, 32, 32}},
      {"13b", {5120, 40, 40}}, {"30b", {7168, 56, 48}},  {"70b", {8192, 64, 80}}};
  return known;
}

}  // namespace

std::vector<MeasuredRun> convert_mosaic(const std::string& path) {
  static const std::map<std::string, std::string> types = {
      {"h100_80gb", "H100-80"}, {"a100_80gb", "A100-80"}, {"a100_40gb", "A100-40"}};
  Csv csv;
  load_csv(path, csv);
  std::vector<MeasuredRun> records;
  for (const CsvRow& row : csv.rows) {
    if (row.text("Precision") == "amp_fp8") continue;  // 8-bit products are not modelled
    const auto size = sizes().find(row.text("Model"));
    const auto type = types.find(row.text("GPU"));
    if (size == sizes().end() || type == types.end()) continue;
    MeasuredRun record;
    record.name = std::to_string(row.where().line);
    record.where = row.where();
    record.framework = "llm-foundry";
    record.platform = "mosaic";
    record.precision = Precision::bf16;
    TransformerShape& shape = record.shape;
    shape = gpt_shape(size->second.layers, size->second.hidden, size->second.heads, row.integer("SeqLen (T)"),
                      50368);
    shape.tied_embeddings = true;
    shape.biases = shape.learned_positions = false;
    UniformPlan uniform;
    uniform.model = record.model = row.text("Model");
    uniform.dp = row.integer("# GPUs");
    uniform.cuts = even_cuts(shape.layers, 1);
    uniform.microbatch = row.integer("MicroBatchSize");
    uniform.global_batch = int64_t{uniform.dp} * uniform.microbatch * row.integer("GradAccum");
    uniform.gpu_type = type->second;
    uniform.recompute = row.flag("Activation Checkpointing") ? Recompute::full : Recompute::none;
    record.plan = uniform.plan();
    record.iteration_s.push_back(static_cast<double>(uniform.global_batch) * shape.sequence /
                                 row.number("Throughput (T/s)"));
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sailor::convert
