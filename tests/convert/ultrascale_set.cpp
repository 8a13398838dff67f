// The Ultra-Scale Playbook's sweep of nanotron over 8 x H100 nodes. Memory is GiB on world rank 0, which is
// on the first stage.
#include <algorithm>
#include <cmath>

#include "tests/convert/convert.h"
#include "tests/convert/csv.h"
#include "tests/convert/shape.h"
#include "tests/convert/uniform_plan.h"

namespace sailor::convert {
namespace {

// nanotron deals layers to stages by cumulative cost: on to the next stage when the cost so far reaches
// its share (the published code says: passes; the measured memory of stages that hit it exactly says:
// reaches).
std::vector<int> cost_cuts(const TransformerShape& shape, int stages) {
  const double h = shape.hidden, block = 4 * h * h + 3 * h * shape.feed_forward,
               head = h * static_cast<double>(shape.vocabulary);
  const double share = (block * shape.layers + head) / stages;
  std::vector<int> cuts{0};
  double cost = 0;
  for (int layer = 0; layer < shape.num_all_layers(); ++layer) {
    if (layer > 0) cost += layer <= shape.layers ? block : head;
    const int stage = static_cast<int>(cuts.size()) - 1;
    if (cost >= share * (stage + 1) * (1 - 1e-12) && stage + 1 < stages && layer + 1 < shape.num_all_layers())
      cuts.push_back(layer + 1);
  }
  cuts.push_back(shape.num_all_layers());
  // Where the last stages would be left without a layer, the last layers are theirs.
  while (static_cast<int>(cuts.size()) < stages + 1) cuts.push_back(shape.num_all_layers());
  for (size_t i = cuts.size() - 1; i-- > 1;) cuts[i] = std::min(cuts[i], cuts[i + 1] - 1);
  return cuts;
}

// Two things that no column says and the measured memory does: see etc/doc/simulator.md. On one stage, what
// the column-split products of up to 18 blocks gather stays cached; in pipelines of the sweep's earlier part
// (all but the largest model and the largest machine) it stays for all microbatches in flight but two.
void add_gathered_inputs(const UniformPlan& plan, int nodes, bool is_largest, MeasuredRun& record) {
  if (plan.tp == 1) return;
  if (plan.pp == 1 && plan.dp < 64) {
    record.options = {{"gathered_input_bytes", "4.8"},
                      {"gathered_input_blocks", "18"},
                      {"gathered_input_most", "31GiB"},
                      {"gathered_input_limit", "80GiB"}};
  } else if (plan.pp > 1 && nodes < 64 && plan.tp <= 16 && !is_largest) {
    record.options = {
        {"gathered_input_bytes", "3.6"}, {"gathered_input_spares", "2"}, {"gathered_input_limit", "70GiB"}};
  }
}

}  // namespace

std::vector<MeasuredRun> convert_ultrascale(const std::string& path) {
  Csv csv;
  load_csv(path, csv);
  std::vector<MeasuredRun> records;
  for (const CsvRow& row : csv.rows) {
    MeasuredRun record;
    record.name = std::to_string(row.where().line);
    record.where = row.where();
    record.framework = "nanotron";
    record.platform = "p5";
    record.precision = Precision::bf16;
    TransformerShape& shape = record.shape;
    shape = gpt_shape(row.integer("layers"), row.integer("hidden"), row.integer("heads"), row.integer("seq"),
                      row.integer("vocab"));
    shape.kv_heads = row.integer("kv_heads");
    shape.feed_forward = row.integer("ffn");
    shape.gated_mlp = true;
    shape.learned_positions = shape.biases = false;
    shape.tied_embeddings = row.flag("tied_embed");
    UniformPlan uniform;
    uniform.model = record.model = row.text("model");
    uniform.pp = row.integer("pp");
    uniform.dp = row.integer("dp");
    uniform.tp = row.integer("tp");
    uniform.microbatch = row.integer("mbs");
    uniform.global_batch = int64_t{uniform.dp} * uniform.microbatch * row.integer("grad_acc");
    uniform.gpu_type = "H100-80";
    uniform.zero = row.integer("zero") >= 1 ? Zero::optimizer : Zero::none;
    if (uniform.pp > shape.num_all_layers()) continue;
    uniform.cuts = cost_cuts(shape, uniform.pp);
    record.plan = uniform.plan();
    add_gathered_inputs(uniform, row.integer("nodes"), shape.layers >= 80, record);
    record.ran = row.text("status") == "ok";
    if (record.ran) {
      const double tokens = static_cast<double>(uniform.global_batch) * shape.sequence;
      record.iteration_s.push_back(tokens / row.number("tok_s"));
      record.peak_memory_bytes.push_back(row.number("gpu_mem_gb") * std::pow(2, 30));
      record.memory_stage = 0;
    }
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace sailor::convert
