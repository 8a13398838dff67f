// AMP's trials on four nodes of four GPUs, T4 and V100: GPT-2 (24 blocks of 1,024), and in the setting
// `het_model` an image generator whose late blocks are narrow and long.
#include <cmath>

#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::convert {
namespace {

constexpr int kNodeGpus = 4;
constexpr int kBlocks = 24;
// A cut before entry e of the framework's list is a cut before layer:
// GPT-2, 30 entries: embedding, a cast, the blocks, two more casts, head, loss.
int gpt_layer_of(int entry) {
  if (entry <= 1) return entry;
  if (entry <= kBlocks + 2) return entry - 1;  // the cast goes with the first block
  return entry <= kBlocks + 4 ? kBlocks + 1 : kBlocks + 2;
}
// Generator, 56 entries: input, 2 empty ones, 12 blocks, 26 empty ones, 12 blocks, 3 empty ones.
int generator_layer_of(int entry) {
  if (entry == 0) return 0;
  if (entry <= 3) return 1;
  if (entry <= 15) return entry - 2;
  if (entry <= 41) return 13;
  return entry <= 53 ? entry - 28 : kBlocks + 2;
}

// 12 blocks over 9 x 9 tokens of 1,024, then 12 over 288 x 288 tokens of 16 with attention in windows of 18
// x 18.
TransformerShape generator_shape() {
  TransformerShape shape = gpt_shape(kBlocks, 1024, 4, 81, 512);
  shape.other_blocks = {{12, 24, 16, 4, 4, 64, 82944, 324}};
  return shape;
}

std::vector<int> cuts_of(const CsvRow& row, bool is_generator) {
  std::vector<int> cuts;
  const std::string& text = row.text("partition");
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('/', begin), text.size());
    const int entry = std::stoi(text.substr(begin, end - begin));
    cuts.push_back(is_generator ? generator_layer_of(entry) : gpt_layer_of(entry));
    begin = end + 1;
  }
  cuts.back() = kBlocks + 2;
  return cuts;
}

}  // namespace

std::vector<MeasuredRun> convert_amp(const std::string& path) {
  Csv csv;
  load_csv(path, csv);
  std::vector<MeasuredRun> records;
  for (const CsvRow& row : csv.rows) {
    const std::string& setting = row.text("setting");
    const bool is_generator = setting == "het_model";
    MeasuredRun record;
    record.name = std::to_string(row.where().line);
    record.where = row.where();
    record.framework = "amp-deepspeed";
    record.platform = "amp-g4-p3";
    record.precision = Precision::fp16;
    record.shape = is_generator ? generator_shape() : gpt_shape(kBlocks, 1024, 16, 1024, 52256);
    record.shape.tied_embeddings = !is_generator;
    UniformPlan uniform;
    uniform.model = record.model = setting;
    uniform.pp = row.integer("pp");
    uniform.dp = row.integer("dp");
    uniform.tp = row.integer("tp");
    uniform.cuts = cuts_of(row, is_generator);
    if (static_cast<int>(uniform.cuts.size()) != uniform.pp + 1) row.fail("partition: not pp stages");
    bool empty = false;
    for (size_t i = 1; i < uniform.cuts.size(); ++i) empty = empty || uniform.cuts[i] <= uniform.cuts[i - 1];
    uniform.microbatch = row.integer("mbs");
    uniform.global_batch = row.integer("gbs");
    uniform.gpus_per_node = kNodeGpus;
    record.plan = uniform.plan();
    // `homogeneous` ran on T4, `het_cluster` on three nodes of V100 and one of T4, the generator on V100.
    for (PlanPipeline& pipeline : record.plan.pipelines)
      for (PlanStage& stage : pipeline.stages)
        stage.gpu_type =
            is_generator || (setting == "het_cluster" && stage.node != "3") ? "V100-16" : "T4-16";
    if (empty) continue;
    const double seconds = row.optional_number("real_s_per_iter").value_or(INFINITY);
    record.ran = std::isfinite(seconds);
    if (record.ran) record.iteration_s.push_back(seconds);
    record.other_prediction_s = row.number("predicted");
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sailor::convert
